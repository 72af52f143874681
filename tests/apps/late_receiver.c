/*
 * Rank 1 computes for 4 ms before it posts the receive that rank 0 waits for; the other way goes a small message at once.
 * Nothing here compares clocks of ranks, so they may differ.
 */
#include "work.h"

enum { ITERATIONS = 40, BYTES = 1 << 20, LATE_NS = 4000000 };

static char buffer[BYTES];

SITE void wait_for_receiver(void)
{
    MPI_Request request;
    MPI_Isend(buffer, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void come_late(void)
{
    compute(LATE_NS);
    MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    calibrate_work();
    for (int i = 0; i < ITERATIONS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (comm_rank(MPI_COMM_WORLD) == 0)
            wait_for_receiver();
        else
            come_late();
    }
    MPI_Finalize();
    return 0;
}
