/*
 * Two pairs of ranks joined by an inter-communicator: messages and a broadcast across it, then merged into one
 * communicator with the upper pair first.
 * Rows: peers across the inter-communicator are world ranks of the remote group; a broadcast there has bytes in the
 * receiving group and at the root, none at the root's neighbour (MPI_PROC_NULL).
 */
#include "check.h"

enum { BYTES = 56, TAG = 6 };

static void across(MPI_Comm inter, int pair)
{
    char out[BYTES], in[BYTES];
    int rank = comm_rank(inter); /* in the local pair; talks to the same rank of the other pair */
    MPI_Request requests[2];
    MPI_Status statuses[2];
    fill(out, BYTES, 10 * pair + rank);
    MPI_Irecv(in, BYTES, MPI_BYTE, rank, TAG, inter, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, rank, TAG, inter, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK(status_is(&statuses[0], rank, TAG, BYTES) && holds(in, BYTES, 10 * (1 - pair) + rank));

    int root = pair == 1 ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL; /* world rank 1 to the upper pair */
    fill(out, BYTES, rank);
    MPI_Bcast(out, BYTES, MPI_BYTE, root, inter);
    CHECK(holds(out, BYTES, pair == 1 ? 1 : rank));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 4), pair = rank / 2, first = -1;
    MPI_Comm local, inter, merged;
    MPI_Comm_split(MPI_COMM_WORLD, pair, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, pair == 0 ? 2 : 0, TAG, &inter);
    across(inter, pair);
    MPI_Intercomm_merge(inter, pair == 0, &merged);
    CHECK(comm_rank(merged) == (rank + 2) % 4);
    first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, merged);
    CHECK(first == 2);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    if (rank == 0)
        puts("across and merged");
    MPI_Finalize();
    return 0;
}
