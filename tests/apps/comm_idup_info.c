/*
 * MPI_Comm_idup_with_info, and a message over the communicator that it made.
 * Rows: a request of kind other, and the message's communicator.
 */
#include "check.h"

enum { BYTES = 24, TAG = 4 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char data[BYTES];
    MPI_Comm duplicate;
    MPI_Request request;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &duplicate, &request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    MPI_Info_free(&info);
    fill(data, BYTES, rank);
    if (rank == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 1, TAG, duplicate);
    else
        MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, duplicate, MPI_STATUS_IGNORE);
    CHECK(holds(data, BYTES, 0));
    MPI_Comm_free(&duplicate);
    if (rank == 0)
        puts("a duplicate");
    MPI_Finalize();
    return 0;
}
