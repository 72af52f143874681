/* Programs that hang in messages. */
#include "hang.h"

/* Each sends to the next one, and would receive afterwards. The messages are too large for anybody to keep: nobody ever comes
 * to its receive. Four ranks. */
SITE void rendezvous_cycle(void)
{
    here();
    MPI_Send(to_others, LARGE, MPI_BYTE, next(), TAG, MPI_COMM_WORLD);
    MPI_Recv(from_others, LARGE, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Both send and then receive. That works as long as the MPI keeps the messages; they grow until it does not. */
SITE void head_to_head(void)
{
    here();
    for (int bytes = 1024; bytes <= LARGE; bytes *= 2) {
        MPI_Send(to_others, bytes, MPI_BYTE, next(), TAG, MPI_COMM_WORLD);
        MPI_Recv(from_others, bytes, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Both receive before they send. */
SITE void both_receive(void)
{
    here();
    receive_small(next(), TAG, MPI_COMM_WORLD);
    send_small(next(), TAG, MPI_COMM_WORLD);
}

/* Rank 0 sends what must be received to be sent; rank 1 has no such receive and waits for rank 0 in a barrier. */
SITE void missing_receive(void)
{
    here();
    if (rank == 0)
        MPI_Ssend(to_others, SMALL, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 sends with tag 17 and waits for the answer; rank 1 waits for tag 7. */
SITE void wrong_tag(void)
{
    here();
    if (rank == 0) {
        send_small(1, OTHER_TAG, MPI_COMM_WORLD);
        receive_small(1, 1, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        send_small(0, 1, MPI_COMM_WORLD);
    }
}

/* Rank 0 sends in a duplicate of the world; rank 1 waits for the message in the world. */
SITE void wrong_communicator(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_name(other, "other");
    here();
    if (rank == 0) {
        send_small(1, TAG, other);
        receive_small(1, 1, other);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        send_small(0, 1, other);
    }
}

/* Rank 2 sends to rank 0, which waits for a message of rank 1. Three ranks. */
SITE void wrong_source(void)
{
    here();
    if (rank == 2)
        send_small(0, TAG, MPI_COMM_WORLD);
    if (rank == 0)
        receive_small(1, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1's room is too small: its receive returns an error, and has taken the message. It waits for another that nobody sends. */
SITE void truncated(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    here();
    if (rank == 0) {
        send_small(1, OTHER_TAG, MPI_COMM_WORLD);
        receive_small(1, TAG, MPI_COMM_WORLD);
    } else {
        int error = MPI_Recv(from_others, SMALL / 2, MPI_BYTE, 0, OTHER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(error != MPI_SUCCESS);
        receive_small(0, OTHER_TAG, MPI_COMM_WORLD);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Rank 0 looks again and again for a message that rank 1 does not send. */
SITE void iprobe_for_nothing(void)
{
    here();
    if (rank == 0)
        looks_for(1, OTHER_TAG, 2e-2);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A synchronous send to itself, before its receive is posted. The other waits in a barrier. */
SITE void send_to_self(void)
{
    here();
    if (rank == 0) {
        MPI_Ssend(to_others, SMALL, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        receive_small(0, TAG, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A ring by MPI_Sendrecv, in which rank 2 does not take part. Four ranks. */
SITE void ring_without_one(void)
{
    here();
    if (rank != 2)
        MPI_Sendrecv(to_others, LARGE, MPI_BYTE, next(), TAG, from_others, LARGE, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD,
            MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 sends, which rank 1 receives, and receives at once what rank 1 does not send before it has more. */
SITE void half_of_sendrecv(void)
{
    here();
    if (rank == 0)
        MPI_Sendrecv(to_others, SMALL, MPI_BYTE, 1, TAG, from_others, SMALL, MPI_BYTE, 1, OTHER_TAG, MPI_COMM_WORLD,
            MPI_STATUS_IGNORE);
    receive_small(1 - rank, TAG, MPI_COMM_WORLD);
    receive_small(1 - rank, TAG, MPI_COMM_WORLD);
}

/* Rank 0 looks for a message that nobody sends. */
SITE void probe_for_nothing(void)
{
    here();
    if (rank == 0)
        MPI_Probe(1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 takes a message from anyone; the others wait for one of rank 0 before they send. Three ranks. */
SITE void anyone_but_nobody(void)
{
    here();
    if (rank == 0) {
        receive_small(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD);
        for (int peer = 1; peer < size; peer++)
            send_small(peer, TAG, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
}

/* Rank 0 takes two messages from anyone, the second of them from rank 1 alone; its first receive took that of rank 1, which has no
 * other. Rank 2 sends too late: it waits for rank 0. Three ranks. */
SITE void anyone_took_it(void)
{
    here();
    if (rank == 0) {
        receive_small(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD);
        receive_small(1, TAG, MPI_COMM_WORLD);
        send_small(2, TAG, MPI_COMM_WORLD);
    } else if (rank == 1) {
        send_small(0, TAG, MPI_COMM_WORLD);
    } else {
        receive_small(0, TAG, MPI_COMM_WORLD);
        send_small(0, TAG, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Both sides of an inter-communicator receive first. Four ranks. */
SITE void both_sides_receive(void)
{
    MPI_Comm between = between_sides();
    here();
    receive_small(rank % 2, TAG, between);
    send_small(rank % 2, TAG, between);
}

/* The message is there, but the receive wants it after one that rank 1 sends only when it was answered: a circle of three
 * through blocking calls of three kinds. Three ranks. */
SITE void three_kinds(void)
{
    here();
    if (rank == 0)
        MPI_Probe(1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Ssend(to_others, SMALL, MPI_BYTE, 2, TAG, MPI_COMM_WORLD);
    if (rank == 2)
        receive_small(0, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(rendezvous_cycle), PROGRAM(head_to_head), PROGRAM(both_receive),
        PROGRAM(missing_receive), PROGRAM(wrong_tag), PROGRAM(wrong_communicator), PROGRAM(wrong_source), PROGRAM(truncated),
        PROGRAM(iprobe_for_nothing), PROGRAM(send_to_self), PROGRAM(ring_without_one), PROGRAM(half_of_sendrecv), PROGRAM(probe_for_nothing), PROGRAM(anyone_but_nobody), PROGRAM(anyone_took_it),
        PROGRAM(both_sides_receive), PROGRAM(three_kinds)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
