/*
 * Two halves of a job that meet by a port, as strangers do.
 * Rows: a call for each step, and the messages over the inter-communicator.
 */
#include "check.h"

enum { TAG = 5, BYTES = 24 };

static void exchange(MPI_Comm comm, int rank)
{
    char data[BYTES];
    fill(data, BYTES, TAG);
    if (rank == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 0, TAG, comm);
    else
        MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
    CHECK(holds(data, BYTES, TAG));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    exchange(other, rank);
    MPI_Comm_disconnect(&other);
    if (rank == 0) {
        MPI_Close_port(port);
        puts("met");
    }
    MPI_Finalize();
    return 0;
}
