/*
 * until FILE [kill RANK]: two ranks exchange messages until FILE exists; then rank 0 says how many rounds there were. With
 * `kill` that rank then dies of SIGKILL, and the other waits for it.
 * Rows: on each rank as many sends and receives of 1000 bytes, ended by as many MPI_Waitall.
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { BYTES = 1000, TAG = 1, LONGEST = 40 * 1000 * 1000, PAUSE = 2000 };

static void exchange(int peer, int round)
{
    static char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    fill(out, BYTES, round);
    MPI_Irecv(in, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(holds(in, BYTES, round));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), goes_on = 1, rounds = 0;
    CHECK(argc == 2 || argc == 4);
    while (goes_on) {
        exchange(1 - rank, rounds++);
        usleep(PAUSE);
        goes_on = access(argv[1], F_OK) != 0 && rounds < LONGEST / PAUSE;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("%d rounds\n", rounds);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc == 4) {
        usleep(200 * 1000); /* until the line above is with the launcher */
        if (rank == atoi(argv[3]))
            raise(SIGKILL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
