/*
 * Every call that moves data of a window, between fences.
 * Rows: bytes are what the target's memory gives or gets, the peer is the target's rank in MPI_COMM_WORLD, also for a
 * window over a communicator in which ranks are turned round.
 */
#include "check.h"

enum { COUNT = 6 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), memory[COUNT] = {0}, data[COUNT], result[COUNT], one = 1, zero = 0, old;
    MPI_Comm turned;
    MPI_Win window;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    int peer = 1 - comm_rank(turned);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, turned, &window);
    for (int i = 0; i < COUNT; i++)
        data[i] = 10 * rank + i;
    MPI_Win_fence(0, window);
    MPI_Put(data, COUNT, MPI_INT, peer, 0, COUNT, MPI_INT, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < COUNT; i++)
        CHECK(memory[i] == 10 * (1 - rank) + i);
    MPI_Win_fence(0, window);
    MPI_Get(result, 3, MPI_INT, peer, 1, 3, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(result[0] == 10 * rank + 1 && result[2] == 10 * rank + 3);
    MPI_Accumulate(data, 2, MPI_INT, peer, 0, 2, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(memory[1] == 2 * (10 * (1 - rank) + 1));
    MPI_Get_accumulate(data, 4, MPI_INT, result, 4, MPI_INT, peer, 0, 4, MPI_INT, MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    CHECK(result[1] == 2 * (10 * rank + 1) && result[3] == 10 * rank + 3);
    memory[5] = 0;
    memory[4] = 1; /* a place of its own: a rank may swap while its peer still looks at what was fetched */
    MPI_Win_fence(0, window);
    MPI_Fetch_and_op(&one, &old, MPI_INT, peer, 5, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(memory[5] == 1 && old == 0);
    MPI_Compare_and_swap(&zero, &one, &old, MPI_INT, peer, 4, window);
    MPI_Win_fence(0, window);
    CHECK(memory[4] == 0 && old == 1);
    MPI_Win_free(&window);
    MPI_Comm_free(&turned);
    if (rank == 0)
        puts("put, get, accumulate, get and accumulate, fetch, swap");
    MPI_Finalize();
    return 0;
}
