/*
 * Many requests and then the end: how long MPI_Finalize takes, which with lapscope is when a rank turns its spool into
 * SQLite.
 *
 *   flood REQUESTS
 *
 * Every rank sends itself REQUESTS / 2 messages of 8 bytes in pairs of Irecv and Isend. The slowest rank's seconds in
 * MPI_Finalize cannot be gathered any more, so each rank prints its own.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank;
    double in = 0, out = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long requests = argc > 1 ? atol(argv[1]) : 1000000;
    for (long done = 0; done < requests; done += 2) {
        MPI_Request pair[2];
        MPI_Irecv(&in, 1, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &pair[0]);
        MPI_Isend(&out, 1, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &pair[1]);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    }
    double begin = seconds();
    MPI_Finalize();
    printf("%.3f\n", seconds() - begin);
    return 0;
}
