/*
 * MPI_Sendrecv around a ring of three with different sizes and tags in the two directions, then
 * MPI_Sendrecv_replace, which finds its message from MPI_ANY_SOURCE.
 * Rows: one call row each, kind send, with the sent half in its own columns and the received half beside it.
 */
#include "check.h"

enum { ROOM = 300, UNIT = 100, RING = 3, TAG = 10 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, RING), next = (rank + 1) % RING, previous = (rank + RING - 1) % RING;
    char out[ROOM], in[ROOM];
    MPI_Status status;
    fill(out, (rank + 1) * UNIT, rank);
    MPI_Sendrecv(out, (rank + 1) * UNIT, MPI_BYTE, next, TAG + rank, in, ROOM, MPI_BYTE, previous, TAG + previous,
                 MPI_COMM_WORLD, &status);
    CHECK(status_is(&status, previous, TAG + previous, (previous + 1) * UNIT));
    CHECK(holds(in, (previous + 1) * UNIT, previous));
    MPI_Barrier(MPI_COMM_WORLD);
    fill(out, UNIT, rank);
    MPI_Sendrecv_replace(out, UNIT, MPI_BYTE, previous, TAG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    CHECK(holds(out, UNIT, next));
    if (rank == 0)
        puts("round the ring");
    MPI_Finalize();
    return 0;
}
