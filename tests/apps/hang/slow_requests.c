/* Programs that are slow and look, for a while, as if they hung at requests or windows. They end. */
#include "hang.h"

/* Rank 0 tests a receive until it is complete; rank 1 sends late. */
SITE void tests_until(void)
{
    here();
    if (rank == 0) {
        MPI_Request request;
        MPI_Irecv(from_others, SMALL, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        for (int flag = 0; !flag;) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            sleeps(1e-4);
        }
    } else {
        sleeps(seconds);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Rank 0 waits for any of two; the one comes late, the other only when rank 0 has answered. Three ranks. */
SITE void waitany_late(void)
{
    here();
    if (rank == 0) {
        MPI_Request requests[2];
        int index;
        for (int i = 0; i < 2; i++)
            MPI_Irecv(from_others + i * SMALL, SMALL, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        CHECK(index == 0);
        send_small(2, TAG, MPI_COMM_WORLD);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        computes(seconds);
        send_small(0, TAG, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* A halo of four ranks in which rank 3 computes longer. */
SITE void waitall_late(void)
{
    here();
    for (int step = 0; step < 4; step++) {
        MPI_Request requests[4];
        MPI_Irecv(from_others, LARGE / 2, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(from_others + LARGE / 2, LARGE / 2, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, &requests[1]);
        if (rank == 3)
            computes(seconds / 4);
        MPI_Isend(to_others, LARGE / 2, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(to_others, LARGE / 2, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
}

/* The transfer needs rank 1 to make progress, which computes between its post and its wait. */
SITE void needs_progress_of_other(void)
{
    MPI_Request request;
    here();
    if (rank == 0) {
        MPI_Isend(to_others, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    } else {
        MPI_Irecv(from_others, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
        computes(seconds);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Persistent receives are started before their sends, which rank 0 starts late. */
SITE void persistent_late(void)
{
    MPI_Request requests[2];
    MPI_Send_init(to_others, SMALL, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(from_others, SMALL, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, &requests[1]);
    here();
    for (int round = 0; round < 3; round++) {
        MPI_Start(&requests[1]);
        if (rank == 0)
            sleeps(seconds / 3);
        MPI_Start(&requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Two non-blocking collectives, begun in one order by all and waited for in another by rank 1; rank 0 begins the second late. */
SITE void icollectives_late(void)
{
    MPI_Request first, second;
    int sum, one = 1;
    here();
    MPI_Ibarrier(MPI_COMM_WORLD, &first);
    if (rank == 0)
        computes(seconds);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &second);
    MPI_Wait(rank == 1 ? &second : &first, MPI_STATUS_IGNORE);
    MPI_Wait(rank == 1 ? &first : &second, MPI_STATUS_IGNORE);
    CHECK(sum == size);
}

/* A barrier that is begun early by rank 0 alone, which goes on to blocking collectives only when the others have it, too. */
SITE void ibarrier_meanwhile(void)
{
    MPI_Request request;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    here();
    if (rank == 0)
        MPI_Ibarrier(other, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
        sleeps(seconds);
        MPI_Ibarrier(other, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&other);
}

/* Rank 0 keeps the lock of rank 1's memory for a while; the others want it. Three ranks. */
SITE void lock_contended(void)
{
    MPI_Win window;
    int *memory, one = 1;
    MPI_Win_allocate(1024, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0)
        receive_small(0, TAG, MPI_COMM_WORLD);
    here();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Put(&one, 1, MPI_INT, 1, rank, 1, MPI_INT, window);
    for (int peer = 1; rank == 0 && peer < size; peer++)
        send_small(peer, TAG, MPI_COMM_WORLD);
    if (rank == 0)
        computes(seconds);
    MPI_Win_unlock(1, window);
    MPI_Win_free(&window);
}

/* Rank 1 is late for the fence. Three ranks. */
SITE void fence_late(void)
{
    MPI_Win window;
    int *memory, one = 1;
    MPI_Win_allocate(1024, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Win_fence(0, window);
    here();
    if (rank == 1)
        sleeps(seconds);
    MPI_Put(&one, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* Exposed late: rank 1 posts its memory, to which rank 0 wants access, after a while. */
SITE void post_late(void)
{
    MPI_Win window;
    MPI_Group world, other;
    int *memory, peer = 1 - rank, one = 1;
    MPI_Win_allocate(1024, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    here();
    if (rank == 0) {
        MPI_Win_start(other, 0, window);
        MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
    } else {
        sleeps(seconds);
        MPI_Win_post(other, 0, window);
        MPI_Win_wait(window);
    }
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(tests_until), PROGRAM(waitany_late), PROGRAM(waitall_late),
        PROGRAM(needs_progress_of_other), PROGRAM(persistent_late), PROGRAM(icollectives_late), PROGRAM(ibarrier_meanwhile),
        PROGRAM(lock_contended), PROGRAM(fence_late), PROGRAM(post_late)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
