/*
 * MPI_Comm_idup, twice at once, the second one ended first, and messages over the communicators that they made.
 * Rows: a request of kind other for each; messages of 8 bytes over the first, 16 over the second.
 */
#include "check.h"

enum { FIRST = 8, SECOND = 16, TAG = 4 };

static void exchange(MPI_Comm comm, int bytes)
{
    char out[SECOND], in[SECOND];
    int rank = comm_rank(comm), peer = 1 - rank;
    MPI_Request requests[2];
    fill(out, bytes, rank);
    MPI_Irecv(in, bytes, MPI_BYTE, peer, TAG, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, peer, TAG, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(holds(in, bytes, peer));
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), flag = 0;
    MPI_Comm first, second;
    MPI_Request requests[2];
    MPI_Comm_idup(MPI_COMM_WORLD, &first, &requests[0]);
    MPI_Comm_idup(MPI_COMM_WORLD, &second, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    exchange(second, SECOND);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    exchange(first, FIRST);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    if (rank == 0)
        puts("two duplicates");
    MPI_Finalize();
    return 0;
}
