/* Programs that are slow and look, for a while, as if they hung in messages. They end. */
#include "hang.h"

/* Rank 0 computes before it sends what rank 1 waits for. */
SITE void late_sender(void)
{
    here();
    if (rank == 0) {
        computes(seconds);
        send_small(1, TAG, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Rank 1 sleeps before it receives what rank 0 can only then send. */
SITE void late_receiver(void)
{
    here();
    if (rank == 0) {
        MPI_Send(to_others, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    } else {
        sleeps(seconds);
        MPI_Recv(from_others, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The message with tag 17 is there long before anybody wants it; rank 1 wants tag 7 first, which rank 0 sends later. */
SITE void other_tag_first(void)
{
    here();
    if (rank == 0) {
        send_small(1, OTHER_TAG, MPI_COMM_WORLD);
        computes(seconds);
        send_small(1, TAG, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        receive_small(0, OTHER_TAG, MPI_COMM_WORLD);
    }
}

/* Rank 0 sends in another communicator and in the world, with a sleep in between. */
SITE void other_communicator_first(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    here();
    if (rank == 0) {
        send_small(1, TAG, other);
        sleeps(seconds);
        send_small(1, TAG, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        receive_small(0, TAG, other);
    }
    MPI_Comm_free(&other);
}

/* Small messages are under way to rank 1, which computes; rank 0 is in the barrier already. */
SITE void eager_in_flight(void)
{
    here();
    if (rank == 0) {
        for (int i = 0; i < 10; i++)
            send_small(1, TAG, MPI_COMM_WORLD);
    } else {
        computes(seconds);
        for (int i = 0; i < 10; i++)
            receive_small(0, TAG, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Both send before they receive, which is unsafe and works with messages this small; rank 1 comes late. */
SITE void head_to_head_small(void)
{
    here();
    if (rank == 1)
        sleeps(seconds);
    send_small(1 - rank, TAG, MPI_COMM_WORLD);
    receive_small(1 - rank, TAG, MPI_COMM_WORLD);
}

/* One rank after the other: each hands on what it got after a sleep. Four ranks. */
SITE void chain(void)
{
    here();
    if (rank > 0)
        receive_small(rank - 1, TAG, MPI_COMM_WORLD);
    sleeps(seconds / size);
    if (rank < size - 1)
        send_small(rank + 1, TAG, MPI_COMM_WORLD);
    else
        send_small(0, TAG, MPI_COMM_WORLD);
    if (rank == 0)
        receive_small(size - 1, TAG, MPI_COMM_WORLD);
}

/* Rank 0 hands out work to whoever asks; the others compute on it, and wait for more. Three ranks. */
SITE void master_and_workers(void)
{
    enum { ITEMS = 8 };
    here();
    if (rank > 0) {
        for (int tag = TAG; tag == TAG;) {
            MPI_Status status;
            send_small(0, TAG, MPI_COMM_WORLD);
            MPI_Recv(from_others, SMALL, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            tag = status.MPI_TAG;
            computes(tag == TAG ? seconds / ITEMS : 0);
        }
    }
    for (int item = 0; rank == 0 && item < ITEMS + size - 1; item++) {
        MPI_Status status;
        MPI_Recv(from_others, SMALL, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        send_small(status.MPI_SOURCE, item < ITEMS ? TAG : OTHER_TAG, MPI_COMM_WORLD);
    }
}

/* Rank 0 takes from anyone; rank 2 sends late, and rank 1 waits for an answer. Three ranks. */
SITE void anyone_late(void)
{
    here();
    if (rank == 0) {
        receive_small(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD);
        send_small(1, OTHER_TAG, MPI_COMM_WORLD);
    } else if (rank == 1) {
        receive_small(0, OTHER_TAG, MPI_COMM_WORLD);
    } else {
        sleeps(seconds);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Rank 0 looks for a message until it is there. */
SITE void probes_until(void)
{
    here();
    if (rank == 0) {
        looks_for(1, TAG, 1e-4);
        receive_small(1, TAG, MPI_COMM_WORLD);
    } else {
        computes(seconds);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Messages of four megabytes, one after the other, each received in pieces of a millisecond's sleep. */
SITE void large_messages(void)
{
    here();
    for (int64_t end = now_ns() + (int64_t)(seconds * 1e9), more = 1; more;) {
        more = now_ns() < end;
        MPI_Bcast(&more, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Send(to_others, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        else
            MPI_Recv(from_others, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* One side of an inter-communicator is late, with a message and with a broadcast. Four ranks. */
SITE void intercomm_late(void)
{
    MPI_Comm between = between_sides();
    here();
    if (rank < 2) {
        receive_small(rank, TAG, between);
    } else {
        sleeps(seconds);
        send_small(rank - 2, TAG, between);
    }
    if (rank == 2)
        sleeps(seconds);
    MPI_Bcast(to_others, SMALL, MPI_BYTE, rank < 2 ? 0 : rank == 2 ? MPI_ROOT : MPI_PROC_NULL, between);
    MPI_Comm_free(&between);
}

/* A broadcast for which rank 1 has too little room returns an error there, and both go on; rank 0 is late at the next
 * collective. Two ranks, as Open MPI's trees of more do not hand on what is too long. */
SITE void broadcast_too_long(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Bcast(to_others, rank == 0 ? SMALL : SMALL / 4, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(rank == 0 || error != MPI_SUCCESS);
    here();
    if (rank == 0)
        computes(seconds);
    MPI_Allreduce(to_others, from_others, SMALL, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Reduce(to_others, from_others, SMALL, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(late_sender), PROGRAM(late_receiver), PROGRAM(other_tag_first),
        PROGRAM(other_communicator_first), PROGRAM(eager_in_flight), PROGRAM(head_to_head_small), PROGRAM(chain),
        PROGRAM(master_and_workers), PROGRAM(anyone_late), PROGRAM(probes_until), PROGRAM(large_messages),
        PROGRAM(intercomm_late), PROGRAM(broadcast_too_long)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
