/*
 * Question: MPI_Win_wait takes 20 ms on rank 1, for 64 KiB that rank 0 has put long before. Who is waited for?
 * Truth:    rank 0 computes between MPI_Put and MPI_Win_complete, and MPI_Win_wait stands until that is called.
 * Cure:     MPI_Win_complete before the computation (argument "cured").
 */
#include "../work.h"

enum { BYTES = 64 << 10, ROUNDS = 20, COMPUTE_NS = 20000000 };

SITE void put(MPI_Win window, MPI_Group other, const char *data, int cured)
{
    MPI_Win_start(other, 0, window);
    MPI_Put(data, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window);
    if (cured)
        MPI_Win_complete(window);
    compute(COMPUTE_NS);
    if (!cured)
        MPI_Win_complete(window);
}

SITE void wait_for(MPI_Win window, MPI_Group other)
{
    MPI_Win_post(other, 0, window);
    MPI_Win_wait(window);
    compute(COMPUTE_NS);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), other = 1 - rank;
    int cured = is_cured(argc, argv);
    char *memory = make_buffer(BYTES), *data = make_buffer(BYTES);
    MPI_Win window;
    MPI_Group all, one;
    calibrate_work();
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &one);
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            put(window, one, data, cured);
        else
            wait_for(window, one);
    }
    MPI_Group_free(&one);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
    free(memory);
    free(data);
    MPI_Finalize();
    return 0;
}
