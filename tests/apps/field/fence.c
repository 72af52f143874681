/*
 * Question: MPI_Win_fence takes 10 ms on rank 0, with 64 KiB put in between. Is one-sided communication so slow here?
 * Truth:    rank 1 computes twice as long before it comes to the fence, and a fence waits for all.
 * Cure:     even work (argument "cured").
 */
#include "../work.h"

enum { BYTES = 64 << 10, ROUNDS = 20, COMPUTE_NS = 10000000 };

SITE void put_and_fence(MPI_Win window, const char *data, int rank, int cured)
{
    MPI_Put(data, BYTES, MPI_BYTE, 1 - rank, 0, BYTES, MPI_BYTE, window);
    compute(cured ? COMPUTE_NS * 3 / 2 : COMPUTE_NS * (1 + rank));
    MPI_Win_fence(0, window);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    int cured = is_cured(argc, argv);
    char *memory = make_buffer(BYTES), *data = make_buffer(BYTES);
    MPI_Win window;
    calibrate_work();
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int round = 0; round < ROUNDS; round++)
        put_and_fence(window, data, rank, cured);
    MPI_Win_free(&window);
    free(memory);
    free(data);
    MPI_Finalize();
    return 0;
}
