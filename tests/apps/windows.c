/*
 * The calls that make windows and those that synchronise: fence is in rma_blocking.c; here post, start, complete and wait,
 * locks and flushes, dynamic and shared windows.
 * Rows: a call of kind rma for each, without bytes; the peer is the target where there is one.
 */
#include "check.h"

static void exposed(MPI_Win window, int *memory, MPI_Group other, int rank)
{
    int value = 7, flag = 0;
    for (int round = 0; round < 2; round++) {
        if (rank == 0) {
            MPI_Win_start(other, 0, window);
            MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
            MPI_Win_complete(window);
            continue;
        }
        MPI_Win_post(other, 0, window);
        if (round == 0)
            MPI_Win_wait(window);
        while (round == 1 && !flag)
            MPI_Win_test(window, &flag);
        CHECK(MPICH_OF_4_0 || *memory == 7); /* there it has not arrived yet */
    }
}

static void locked(MPI_Win window, int peer)
{
    int value = 8;
    MPI_Win_lock(MPI_LOCK_SHARED, peer, MPI_MODE_NOCHECK, window);
    MPI_Put(&value, 1, MPI_INT, peer, 0, 1, MPI_INT, window);
    MPI_Win_flush_local(peer, window);
    MPI_Win_flush(peer, window);
    MPI_Win_unlock(peer, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Win_flush_local_all(window);
    MPI_Win_flush_all(window);
    MPI_Win_sync(window);
    MPI_Win_unlock_all(window);
}

static void dynamic(int rank, int peer)
{
    MPI_Win window;
    MPI_Aint here, there;
    int memory = 0, value = 100 + rank;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, &memory, sizeof memory);
    MPI_Get_address(&memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, peer, 1, &there, 1, MPI_AINT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, peer, there, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(memory == 100 + peer);
    MPI_Win_detach(window, &memory);
    MPI_Win_free(&window);
}

static void shared(int rank, int peer)
{
    MPI_Win window;
    MPI_Aint size;
    int *own, *others, unit;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    MPI_Win_shared_query(window, peer, &size, &unit, &others);
    MPI_Win_fence(0, window);
    *own = 50 + rank;
    MPI_Win_fence(0, window);
    CHECK(*others == 50 + peer);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank, *memory;
    MPI_Group world, other;
    MPI_Win window;
    MPI_Info info;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Info_create(&info);
    MPI_Win_set_info(window, info);
    MPI_Info_free(&info);
    exposed(window, memory, other, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    locked(window, peer);
    MPI_Win_free(&window);
    dynamic(rank, peer);
    shared(rank, peer);
    MPI_Group_free(&world);
    MPI_Group_free(&other);
    if (rank == 0)
        puts("exposed, locked, dynamic, shared");
    MPI_Finalize();
    return 0;
}
