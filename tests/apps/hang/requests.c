/* Programs that hang at requests. */
#include "hang.h"

/* Rank 0 waits for three messages, of which rank 1 sends two and one with another tag. */
SITE void one_of_three(void)
{
    here();
    if (rank == 0) {
        static const int tags[] = {1, 2, 9};
        MPI_Request requests[3];
        for (int i = 0; i < 3; i++)
            MPI_Irecv(from_others + i * SMALL, SMALL, MPI_BYTE, 1, tags[i], MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else {
        for (int tag = 1; tag <= 3; tag++)
            send_small(0, tag, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

SITE void receive_from_all_others(MPI_Request *requests)
{
    for (int peer = 0; peer < size; peer++)
        if (peer != rank)
            MPI_Irecv(from_others + peer * SMALL, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, requests++);
}

/* Each waits for a message of any other before it sends to all: a knot, no circle is enough for it. Three ranks. */
SITE void waitany_knot(void)
{
    MPI_Request requests[2];
    int index;
    here();
    receive_from_all_others(requests);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < size; peer++)
        if (peer != rank)
            send_small(peer, TAG, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* As before, by MPI_Waitsome, and rank 0 in MPI_Waitall. Three ranks. */
SITE void waitsome_knot(void)
{
    MPI_Request requests[2];
    int done, indices[2];
    here();
    receive_from_all_others(requests);
    if (rank == 0)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    else
        MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
}

/* Persistent receives, started by both ranks before the sends are. They have worked before, with sends started first. */
SITE void persistent_receives(void)
{
    MPI_Request send, receive;
    MPI_Send_init(to_others, SMALL, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &send);
    MPI_Recv_init(from_others, SMALL, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, &receive);
    for (int round = 0; round < 3; round++) {
        MPI_Start(&send);
        MPI_Start(&receive);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    here();
    MPI_Start(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Start(&send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

/* Rank 0 tests a receive, again and again, for whose tag rank 1 has sent nothing. */
SITE void tests_in_vain(double pause)
{
    here();
    if (rank == 0) {
        MPI_Request request;
        MPI_Irecv(from_others, SMALL, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        for (int flag = 0; !flag;) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            sleeps(pause);
        }
        send_small(1, TAG, MPI_COMM_WORLD);
    } else {
        send_small(0, OTHER_TAG, MPI_COMM_WORLD);
        receive_small(0, TAG, MPI_COMM_WORLD);
    }
}

SITE void tests_for_ever(void)
{
    tests_in_vain(1e-4);
}

/* As from the main loop of a program with a window. */
SITE void tests_now_and_then(void)
{
    tests_in_vain(20e-3);
}

/* A synchronous send that nobody receives: rank 1 has no more to do. */
SITE void sends_to_who_left(void)
{
    here();
    if (rank == 0) {
        MPI_Request request;
        MPI_Issend(to_others, SMALL, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Two broadcasts are begun in one order by rank 0 and in the other by rank 1: each is root of its first. */
SITE void icollectives_swapped(void)
{
    MPI_Request requests[2];
    here();
    MPI_Ibcast(to_others, LARGE, MPI_BYTE, rank, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(from_others, LARGE, MPI_BYTE, 1 - rank, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* A non-blocking barrier is none of the blocking ones in which the others are: MPI-4.1 6.12. Three ranks. */
SITE void ibarrier_is_no_barrier(void)
{
    here();
    if (rank == 0) {
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    good_rounds(1);
}

/* Waits for its send first, and posts the receive that the other's send needs afterwards: both do. */
SITE void waits_for_send_first(void)
{
    MPI_Request request;
    here();
    MPI_Isend(to_others, LARGE, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(from_others, LARGE, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(one_of_three), PROGRAM(waitany_knot), PROGRAM(waitsome_knot),
        PROGRAM(persistent_receives), PROGRAM(tests_for_ever), PROGRAM(tests_now_and_then), PROGRAM(sends_to_who_left), PROGRAM(icollectives_swapped),
        PROGRAM(ibarrier_is_no_barrier), PROGRAM(waits_for_send_first)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
