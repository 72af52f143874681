/*
 * MPI_Request_free on active sends: the messages still arrive, and the handles may be used again by later requests.
 * Rows on rank 0: five sends ended as freed by MPI_Request_free (completed=1 each), then five that were waited for.
 */
#include "check.h"

enum { ROUNDS = 5, BYTES = 64, FREED = 1, WAITED = 2 };

int main(int argc, char **argv)
{
    static char data[2 * ROUNDS][BYTES];
    if (start(&argc, &argv, 2) == 0) {
        MPI_Request request;
        for (int i = 0; i < ROUNDS; i++) {
            fill(data[i], BYTES, i);
            MPI_Isend(data[i], BYTES, MPI_BYTE, 1, FREED, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
            CHECK(request == MPI_REQUEST_NULL);
        }
        for (int i = ROUNDS; i < 2 * ROUNDS; i++) {
            fill(data[i], BYTES, i);
            MPI_Isend(data[i], BYTES, MPI_BYTE, 1, WAITED, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        puts("five freed, five waited for");
    } else {
        for (int i = 0; i < 2 * ROUNDS; i++) {
            MPI_Recv(data[i], BYTES, MPI_BYTE, 0, i < ROUNDS ? FREED : WAITED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(data[i], BYTES, i));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the freed sends' buffers may not be given up before they have arrived */
    MPI_Finalize();
    return 0;
}
