/*
 * Holds watchpoints of the processor itself, as a debugger does, before MPI starts, then exchanges messages, and says how many
 * writes its watchpoints saw: those of its own. With an argument it takes so many, else all that there are.
 * Rows: 50 sends and receives of 4000 bytes on each of two ranks.
 */
#include "check.h"

#include "watchpoint.h"

enum { ROUNDS = 50, WORDS = 500, TAG = 450 };

static volatile int64_t watched[MOST_WATCHPOINTS];

static void exchange(int peer, int round)
{
    static int64_t out[WORDS], in[WORDS];
    MPI_Request requests[2];
    for (int i = 0; i < WORDS; i++)
        out[i] = round + i;
    MPI_Irecv(in, WORDS, MPI_INT64_T, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, WORDS, MPI_INT64_T, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WORDS; i++)
        CHECK(in[i] == round + i);
}

int main(int argc, char **argv)
{
    int events[MOST_WATCHPOINTS], wanted = argc > 1 ? atoi(argv[1]) : MOST_WATCHPOINTS;
    int count = watch_most(watched, wanted, events), rank = start(&argc, &argv, 2);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++)
            watched[i] = round;
        exchange(1 - rank, round);
    }
    for (int i = 0; i < count; i++) {
        uint64_t seen = 0;
        CHECK(read(events[i], &seen, sizeof seen) == sizeof seen && seen == ROUNDS);
    }
    if (rank == 0)
        printf("%d held\n", count);
    MPI_Finalize();
    return 0;
}
