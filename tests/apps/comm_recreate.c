/*
 * Twenty-one communicators, each freed before the next is made, so that MPI uses the handle again: in turn both ranks in
 * order, both reversed, and each rank alone. In each, a message goes to rank 0 of the communicator.
 * Rows: the peer is the world rank that was rank 0 of that communicator at that time: 0, 1 or the rank itself.
 */
#include "check.h"

enum { ROUNDS = 21, BYTES = 20 };

static void to_first(MPI_Comm comm, int round)
{
    char out[BYTES], in[BYTES];
    int rank = comm_rank(comm), size = comm_size(comm);
    MPI_Request request;
    fill(out, BYTES, round);
    MPI_Isend(out, BYTES, MPI_BYTE, 0, round % 3, comm, &request);
    if (rank == 0)
        for (int i = 0; i < size; i++) {
            MPI_Recv(in, BYTES, MPI_BYTE, i, round % 3, comm, MPI_STATUS_IGNORE);
            CHECK(holds(in, BYTES, round));
        }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    for (int round = 0; round < ROUNDS; round++) {
        int shape = round % 3; /* in order, reversed, alone */
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, shape == 2 ? rank : 0, shape == 1 ? -rank : rank, &comm);
        to_first(comm, round);
        MPI_Comm_free(&comm);
        CHECK(comm == MPI_COMM_NULL);
    }
    if (rank == 0)
        printf("%d communicators\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
