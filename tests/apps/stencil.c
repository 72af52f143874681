/*
 * Neighbours in a ring exchange a number in every step, and all of them now and then their largest: the result is the same
 * to the last bit however long anything takes. With a second argument that rank kills itself half way.
 *
 *   stencil STEPS [RANK]
 */
#include "check.h"

#include <signal.h>

static double step(double mine, int number, int left, int right)
{
    double of_right, of_left, posted = 1.5 * mine + number;
    MPI_Request requests[4];
    MPI_Irecv(&of_right, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&of_left, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&posted, 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&posted, 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    return 0.25 * (of_left + of_right) + 0.1 * mine;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc >= 2);
    int rank = comm_rank(MPI_COMM_WORLD), size = comm_size(MPI_COMM_WORLD);
    int steps = atoi(argv[1]), killed = argc > 2 ? atoi(argv[2]) : -1;
    double mine = rank, largest = 0, sum = 0;
    for (int i = 0; i < steps; i++) {
        if (rank == killed && i == steps / 2)
            raise(SIGKILL);
        mine = step(mine, i, (rank + size - 1) % size, (rank + 1) % size);
        if (i % 10 == 9)
            MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%a %a\n", sum, largest);
    MPI_Finalize();
    return 0;
}
