/*
 * Question: MPI_Win_unlock takes 20 ms for 64 KiB, and the barrier behind it long as well. Is the network slow?
 * Truth:    the target computes, and this MPI moves the data when it enters MPI.
 * Cure:     MPI_Iprobe now and then in the target's computation (argument "cured"). With "flush_all" it is MPI_Win_flush_all that
 *           takes so long, which names no target.
 */
#include "../work.h"

enum { BYTES = 64 << 10, ROUNDS = 20, PIECES = 40, COMPUTE_NS = 20000000 };

SITE void put(MPI_Win window, const char *data, int flushes_all)
{
    if (flushes_all)
        MPI_Win_lock_all(0, window);
    else
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    MPI_Put(data, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window);
    if (flushes_all) {
        MPI_Win_flush_all(window);
        MPI_Win_unlock_all(window);
    } else {
        MPI_Win_unlock(1, window);
    }
}

SITE void compute_as_target(int looks)
{
    int flag;
    for (int piece = 0; piece < PIECES; piece++) {
        compute(COMPUTE_NS / PIECES);
        if (looks)
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    int cured = is_cured(argc, argv), flushes_all = is_asked(argc, argv, "flush_all");
    char *memory = make_buffer(BYTES), *data = make_buffer(BYTES);
    MPI_Win window;
    calibrate_work();
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            put(window, data, flushes_all);
        else
            compute_as_target(cured);
        if (rank == 0)
            compute(COMPUTE_NS / 2);
    }
    MPI_Win_free(&window);
    free(memory);
    free(data);
    MPI_Finalize();
    return 0;
}
