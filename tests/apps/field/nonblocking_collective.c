/*
 * Question: MPI_Iallreduce with 20 ms of computation behind it, and MPI_Wait still takes long. Why is nothing hidden?
 * Truth:    its rounds but the first need the ranks inside MPI.
 * Cure:     MPI_Test now and then in the computation (argument "cured").
 */
#include "../work.h"

enum { COUNT = 1 << 18, ROUNDS = 30, PIECES = 40, COMPUTE_NS = 4000000 };

SITE void reduce_and_compute(const double *mine, double *sum, int looks)
{
    MPI_Request request;
    int done;
    MPI_Iallreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int piece = 0; piece < PIECES; piece++) {
        compute(COMPUTE_NS / PIECES);
        if (looks)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    start(&argc, &argv, 2);
    int cured = is_cured(argc, argv);
    double *mine = calloc(COUNT, sizeof *mine), *sum = calloc(COUNT, sizeof *sum);
    CHECK(mine && sum);
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++)
        reduce_and_compute(mine, sum, cured);
    free(mine);
    free(sum);
    MPI_Finalize();
    return 0;
}
