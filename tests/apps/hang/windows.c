/* Programs that hang in one-sided communication. */
#include "hang.h"

static MPI_Win make_window(void)
{
    MPI_Win window;
    int *memory;
    MPI_Win_allocate(1024, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Win_fence(0, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    return window;
}

/* Rank 0 holds the lock of rank 1's memory and waits for a message, which rank 1 sends when it has had that lock. */
SITE void lock_never_released(void)
{
    MPI_Win window = make_window();
    int one = 1;
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_flush(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    here();
    if (rank == 0) {
        receive_small(1, TAG, MPI_COMM_WORLD);
        MPI_Win_unlock(1, window);
    } else {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Put(&one, 1, MPI_INT, 1, 1, 1, MPI_INT, window);
        MPI_Win_unlock(1, window);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Rank 2 is not at the fence: it is in a barrier. Three ranks. */
SITE void fence_without_one(void)
{
    MPI_Win window = make_window();
    here();
    if (rank != 2)
        MPI_Win_fence(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 wants to begin access to memory that rank 1 never posts. */
SITE void start_without_post(void)
{
    MPI_Win window = make_window();
    MPI_Group world, other;
    int target = 1, one = 1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &target, &other);
    here();
    if (rank == 0) {
        MPI_Win_start(other, 0, window);
        MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {
        PROGRAM(lock_never_released), PROGRAM(fence_without_one), PROGRAM(start_without_post)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
