/*
 * Two ranks exchange messages of which each has a tag of its own: `many_tags MESSAGES`, a multiple of 32.
 */
#include "check.h"

enum { BATCH = 32 };

static void exchange(int first, int rank)
{
    int sent[BATCH], came[BATCH];
    MPI_Request requests[2 * BATCH];
    MPI_Status statuses[2 * BATCH];
    for (int i = 0; i < BATCH; i++)
        MPI_Irecv(&came[i], 1, MPI_INT, 1 - rank, first + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < BATCH; i++) {
        sent[i] = 3 * (first + i) + rank;
        MPI_Isend(&sent[i], 1, MPI_INT, 1 - rank, first + i, MPI_COMM_WORLD, &requests[BATCH + i]);
    }
    MPI_Waitall(2 * BATCH, requests, statuses);
    for (int i = 0; i < BATCH; i++)
        CHECK(came[i] == 3 * (first + i) + 1 - rank);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), messages = argc > 1 ? atoi(argv[1]) : 1024;
    for (int first = 0; first < messages; first += BATCH)
        exchange(first, rank);
    MPI_Finalize();
    return 0;
}
