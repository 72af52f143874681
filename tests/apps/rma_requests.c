/*
 * The four calls of windows that make requests, all under way at once within a lock; ended by each kind of completing call.
 * Rows: a request of kind rma for each; bytes are what the target's memory gives or gets.
 */
#include "check.h"

enum { COUNT = 8 };

static int *memory;

static void use(MPI_Win window, int target)
{
    int data[COUNT], got[COUNT], more[COUNT], result[COUNT], flag = 0, index;
    MPI_Request requests[4];
    MPI_Status statuses[2];
    for (int i = 0; i < COUNT; i++)
        data[i] = 100 + i;
    MPI_Rput(data, 4, MPI_INT, target, 0, 4, MPI_INT, window, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(target, window);
    MPI_Rget(got, 2, MPI_INT, target, 1, 2, MPI_INT, window, &requests[1]);
    while (!flag)
        MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
    CHECK(got[0] == 101 && got[1] == 102);
    MPI_Raccumulate(data, 3, MPI_INT, target, 5, 3, MPI_INT, MPI_SUM, window, &requests[2]);
    MPI_Rget_accumulate(more, 1, MPI_INT, result, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_NO_OP, window, &requests[3]);
    MPI_Waitall(2, &requests[2], statuses);
    CHECK(result[0] == 100);
    MPI_Rget(got, 4, MPI_INT, target, 0, 4, MPI_INT, window, &requests[0]);
    MPI_Waitany(1, requests, &index, MPI_STATUS_IGNORE);
    CHECK(index == 0 && got[3] == 103);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    MPI_Win window;
    MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    memset(memory, 0, COUNT * sizeof(int));
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        use(window, 1);
        MPI_Win_unlock(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    CHECK(rank == 0 || (memory[0] == 100 && memory[5] == 100 && memory[7] == 102));
    MPI_Win_unlock(rank, window);
    MPI_Win_free(&window);
    if (rank == 0)
        puts("put, got, accumulated");
    MPI_Finalize();
    return 0;
}
