/*
 * Question: MPI_Send of 1 KiB, far below the eager limit, takes 20 ms. Do ranks lack processors?
 * Truth:    the receiver computes, and this MPI's send returns when it enters MPI; elsewhere it returns at once.
 * Cure:     MPI_Isend, completed later (argument "cured").
 */
#include "../work.h"

enum { BYTES = 1024, ROUNDS = 20, COMPUTE_NS = 20000000 };

SITE void send(const char *data, int cured)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (cured)
        MPI_Isend(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    else
        MPI_Send(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    compute(COMPUTE_NS / 2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

SITE void receive(char *data)
{
    compute(COMPUTE_NS);
    MPI_Recv(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    int cured = is_cured(argc, argv);
    char *data = make_buffer(BYTES);
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            send(data, cured);
        else
            receive(data);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
