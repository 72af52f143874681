/*
 * Ten thousand receives, then ten thousand sends, all in flight at once, then one MPI_Waitall over each array.
 * Rows of a rank: 2500 receives and 2500 sends with each of four tags, two MPI_Waitall that completed 10000 each.
 */
#include "check.h"

enum { REQUESTS = 10000, TAGS = 4 };

static int out[REQUESTS], in[REQUESTS];
static MPI_Request sends[REQUESTS], receives[REQUESTS];
static MPI_Status statuses[REQUESTS];

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    for (int i = 0; i < REQUESTS; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, peer, i % TAGS, MPI_COMM_WORLD, &receives[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < REQUESTS; i++) {
        out[i] = i * 7 + rank;
        MPI_Isend(&out[i], 1, MPI_INT, peer, i % TAGS, MPI_COMM_WORLD, &sends[i]);
    }
    MPI_Waitall(REQUESTS, receives, statuses);
    MPI_Waitall(REQUESTS, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < REQUESTS; i++) {
        CHECK(in[i] == i * 7 + peer);
        CHECK(status_is(&statuses[i], peer, i % TAGS, sizeof(int)));
    }
    if (rank == 0)
        printf("%d in flight\n", REQUESTS);
    MPI_Finalize();
    return 0;
}
