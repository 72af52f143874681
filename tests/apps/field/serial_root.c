/*
 * Question: all ranks but one wait. It is inside MPI nearly all the time, says the report; whom do they wait for?
 * Truth:    rank 0 works one after the other between its many short receives.
 * Cure:     share that work among the ranks (argument "cured").
 */
#include "../work.h"

enum { ROUNDS = 400, WORK_NS = 200000 };

SITE void serve(int ranks, int cured)
{
    int value;
    for (int from = 1; from < ranks; from++) {
        MPI_Recv(&value, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!cured)
            compute(WORK_NS);
    }
}

SITE void ask(int round, int cured)
{
    if (cured)
        compute(WORK_NS);
    MPI_Send(&round, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), ranks;
    int cured = is_cured(argc, argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            serve(ranks, cured);
        else
            ask(round, cured);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
