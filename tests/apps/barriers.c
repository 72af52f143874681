/*
 * Two ranks take turns to compute for long, with a barrier behind each turn, so that one always waits for the other. With a number, the
 * barrier is made so often only (0: never), and both compute side by side. Computation is sleep here: of two ranks that compute side
 * by side a busy machine would make something else.
 */
#include "work.h"

enum { TURNS = 40, LONG_NS = 10000000, SHORT_NS = 100000 };

SITE void turn(int is_mine, int has_barrier)
{
    nanosleep(&(struct timespec){.tv_nsec = is_mine ? LONG_NS : SHORT_NS}, NULL);
    if (has_barrier)
        MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), every = argc > 1 ? atoi(argv[1]) : 1;
    double sum = rank, all;
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < TURNS; i++)
        turn(i % 2 == rank, every > 0 && (i + 1) % every == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
