/*
 * Question: each of two coupled models waits half of the time for the other one. Which of them is too slow?
 * Truth:    neither: they compute equally long, and take turns.
 * Cure:     the second works on the field of the step before, while it receives the next one (argument "cured").
 */
#include "../work.h"

enum { BYTES = 2048, ROUNDS = 40, COMPUTE_NS = 8000000 };

SITE void first_model(char *field)
{
    compute(COMPUTE_NS);
    MPI_Send(field, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(field, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void second_model(char *field, int cured)
{
    MPI_Request request;
    if (cured) {
        MPI_Irecv(field, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        compute(COMPUTE_NS);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(field, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(COMPUTE_NS);
    }
    MPI_Send(field, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), cured = is_cured(argc, argv);
    char field[BYTES] = {0};
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            first_model(field);
        else
            second_model(field, cured);
    }
    MPI_Finalize();
    return 0;
}
