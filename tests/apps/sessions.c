/*
 * MPI without MPI_Init: two sessions at once, each with a communicator made of the group of all processes, and messages
 * over both; the first session ends while the second one goes on.
 * Rows: a call for each communicator, the messages with their communicator; peers are known as ranks of the world.
 */
#include "session.h"

int main(void)
{
    MPI_Session first = open_session(), second = open_session();
    MPI_Comm one = world_of(first, "first"), two = world_of(second, "second");
    int rank = exchange(one, 1);
    exchange(two, 2);
    MPI_Comm_free(&one);
    MPI_Session_finalize(&first);
    exchange(two, 3);
    MPI_Comm_free(&two);
    MPI_Session_finalize(&second);
    if (rank == 0)
        puts("two sessions at once");
    return 0;
}
