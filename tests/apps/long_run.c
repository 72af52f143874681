/*
 * Two ranks exchange messages, more than a small LAPSCOPE_MAX_MB holds in detail: `long_run SECONDS MESSAGES MICROSECONDS`, at
 * least so long and so many, with a pause after each round. Sizes go round, so that a message is only matched with the right one. Every message is
 * checked; rank 0 prints how many each rank sent.
 */
#include "check.h"

#include <unistd.h>

enum { BATCH = 16, SIZES = 97, MOST = 8 * SIZES, TAG = 1, TAG_OF_ANYBODY = 7 };

static char out[BATCH][MOST], in[BATCH][MOST];

/* One in four is received from whoever sends. */
static int is_of_anybody(int message)
{
    return message % 4 == 3;
}

static void exchange(int round, int peer)
{
    MPI_Request receives[BATCH], sends[BATCH];
    MPI_Status statuses[BATCH];
    for (int i = 0; i < BATCH; i++) {
        int any = is_of_anybody(i);
        MPI_Irecv(in[i], MOST, MPI_BYTE, any ? MPI_ANY_SOURCE : peer, any ? TAG_OF_ANYBODY : TAG, MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = 0; i < BATCH; i++) {
        int number = round * BATCH + i, bytes = 8 * (number % SIZES + 1);
        fill(out[i], bytes, number);
        MPI_Isend(out[i], bytes, MPI_BYTE, peer, is_of_anybody(i) ? TAG_OF_ANYBODY : TAG, MPI_COMM_WORLD, &sends[i]);
    }
    MPI_Waitall(BATCH, receives, statuses);
    for (int i = 0; i < BATCH; i++) {
        int number = round * BATCH + i, bytes = 8 * (number % SIZES + 1), came;
        MPI_Get_count(&statuses[i], MPI_BYTE, &came);
        CHECK(came == bytes && holds(in[i], bytes, number));
    }
    MPI_Waitall(BATCH, sends, statuses);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), rounds = 0, goes_on = 1;
    double seconds = argc > 1 ? atof(argv[1]) : 1, begin = MPI_Wtime();
    int least = argc > 2 ? atoi(argv[2]) : 0;
    unsigned pause = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    for (; goes_on; rounds++) {
        exchange(rounds, 1 - rank);
        goes_on = MPI_Wtime() - begin < seconds || rounds * BATCH < least;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (pause)
            usleep(pause);
    }
    if (rank == 0)
        printf("%d\n", rounds * BATCH);
    MPI_Finalize();
    return 0;
}
