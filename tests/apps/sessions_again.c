/*
 * MPI without MPI_Init, twice: a second session is opened when the first one has ended and MPI with it.
 * Rows: those of both lives.
 */
#include "session.h"

int main(void)
{
    int rank = 0;
    for (int life = 1; life <= 2; life++) {
        MPI_Session session = open_session();
        MPI_Comm comm = world_of(session, life == 1 ? "first" : "second");
        rank = exchange(comm, life);
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
    }
    if (rank == 0)
        puts("two lives");
    return 0;
}
