/*
 * full_speed SECONDS: two ranks exchange small messages as fast as they can, and rank 0 says how long a round took in nanoseconds.
 * Rows: on each rank as many sends and receives of 8 bytes, ended by as many MPI_Waitall, as rounds; a blocking send and a receive
 * each; an MPI_Bcast each 64 rounds.
 */
#include "check.h"

enum { TAG = 1, TURNS = 64 };

static void exchange(int rank, int peer)
{
    static long out, in;
    MPI_Request requests[2];
    MPI_Irecv(&in, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Send(&out, 1, MPI_LONG, peer, TAG + 1, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_LONG, peer, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(&out, 1, MPI_LONG, peer, TAG + 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), goes_on = 1;
    CHECK(argc == 2);
    double begin = MPI_Wtime(), length = atof(argv[1]);
    long rounds = 0;
    while (goes_on) {
        for (int i = 0; i < TURNS; i++)
            exchange(rank, 1 - rank);
        rounds += TURNS;
        goes_on = MPI_Wtime() - begin < length;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%.0f\n", (MPI_Wtime() - begin) * 1e9 / (double)rounds);
    MPI_Finalize();
    return 0;
}
