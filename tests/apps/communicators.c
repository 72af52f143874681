/*
 * A message to the next rank and a broadcast from the last one on communicators made in five ways out of four ranks:
 * duplicate, split into halves with the ranks reversed, created from a group of ranks 0 and 3, a 2 x 2 grid and its rows.
 * Rows: peers are world ranks whatever the rank in the communicator is; each communicator is in the table with its
 * members; bytes tell the communicators apart (8, 16, 24, 32, 40).
 */
#include "check.h"

enum { UNIT = 8, MOST = 5 * UNIT, TAG = 3 };

/* Sends to the next rank of `comm`, receives from the one before, then a broadcast from the last. */
static void exchange(MPI_Comm comm, int bytes)
{
    if (comm == MPI_COMM_NULL)
        return;
    char out[MOST], in[MOST];
    int rank = comm_rank(comm), size = comm_size(comm), next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    fill(out, bytes, rank);
    MPI_Irecv(in, bytes, MPI_BYTE, previous, TAG, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, next, TAG, comm, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK(status_is(&statuses[0], previous, TAG, bytes) && holds(in, bytes, previous));
    MPI_Bcast(out, bytes, MPI_BYTE, size - 1, comm);
    CHECK(holds(out, bytes, size - 1));
}

static void exchange_and_free(MPI_Comm comm, int bytes)
{
    exchange(comm, bytes);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
}

static MPI_Comm create_of_outer_ranks(void)
{
    int outer[] = {0, 3};
    MPI_Group world, group;
    MPI_Comm comm;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, outer, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return comm;
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 4), sizes[] = {2, 2}, periods[] = {1, 1}, keep[] = {0, 1};
    MPI_Comm duplicate, half, grid, row;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &half);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
    MPI_Cart_sub(grid, keep, &row);
    exchange_and_free(duplicate, UNIT);
    exchange_and_free(half, 2 * UNIT);
    exchange_and_free(create_of_outer_ranks(), 3 * UNIT);
    exchange_and_free(grid, 4 * UNIT);
    exchange_and_free(row, 5 * UNIT);
    if (rank == 0)
        puts("five communicators");
    MPI_Finalize();
    return 0;
}
