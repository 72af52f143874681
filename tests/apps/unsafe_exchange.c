/*
 * Two ranks exchange small messages with blocking sends, head to head: both send before they receive. That ends only as long as MPI
 * keeps messages for receives that are not posted yet. With the argument `safe` rank 1 receives first, which always ends.
 */
#include "work.h"

enum { ITERATIONS = 20, BYTES = 1024 };

static char out[BYTES], in[BYTES];

SITE void send_first(int other)
{
    MPI_Send(out, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(in, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void receive_first(int other)
{
    MPI_Recv(in, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(comm_size(MPI_COMM_WORLD) == 2);
    int rank = comm_rank(MPI_COMM_WORLD), is_safe = argc > 1 && strcmp(argv[1], "safe") == 0;
    for (int i = 0; i < ITERATIONS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && is_safe)
            receive_first(0);
        else
            send_first(1 - rank);
    }
    MPI_Finalize();
    return 0;
}
