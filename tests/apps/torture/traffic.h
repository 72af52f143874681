/*
 * Messages that stay pending in both directions between two ranks while a program does something else, most of them too
 * large to be sent ahead: whatever moves them meanwhile is not the program's. Every byte of them is held against what the
 * other rank sent.
 *
 * Half of the receives are posted before the work and half behind it, so that during it messages go to where they belong and
 * others arrive unexpected, for which an MPI allocates.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "../check.h"

enum { EARLY = 3, MESSAGES = 6, LARGEST = 1 << 22, LARGEST_EVERY = 16 };

static struct {
    int round, rank, peer;
    char *out[MESSAGES], *in[MESSAGES];
    MPI_Request requests[2 * MESSAGES];
} traffic;

/* 1 while the program is outside of MPI and nothing of it that MPI knows of may be called. */
static volatile int computing;

static inline int size_of(int message)
{
    static const int sizes[MESSAGES] = {300007, 70001, 3000, 131072, 20011, 100};
    int largest = message == 0 && traffic.round % LARGEST_EVERY == LARGEST_EVERY - 1;
    return largest ? LARGEST : sizes[message];
}

static inline int seed_of(int message, int sender)
{
    return traffic.round * MESSAGES + message + 128 * sender;
}

static inline void post_receives(int first, int last)
{
    for (int i = first; i < last; i++)
        MPI_Irecv(traffic.in[i], size_of(i), MPI_BYTE, traffic.peer, i, MPI_COMM_WORLD, &traffic.requests[i]);
}

static inline void begin_traffic(int round)
{
    traffic.round = round;
    traffic.rank = comm_rank(MPI_COMM_WORLD);
    traffic.peer = 1 - traffic.rank;
    for (int i = 0; i < MESSAGES; i++) {
        if (!traffic.out[i]) {
            traffic.out[i] = (char *)malloc(LARGEST);
            traffic.in[i] = (char *)calloc(1, LARGEST);
        }
        fill(traffic.out[i], size_of(i), seed_of(i, traffic.rank));
    }
    post_receives(0, EARLY);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Isend(traffic.out[i], size_of(i), MPI_BYTE, traffic.peer, i, MPI_COMM_WORLD,
                  &traffic.requests[MESSAGES + i]);
}

static inline void end_traffic(void)
{
    post_receives(EARLY, MESSAGES);
    MPI_Waitall(2 * MESSAGES, traffic.requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++)
        CHECK(holds(traffic.in[i], size_of(i), seed_of(i, traffic.peer)));
}

/* Does `work` for each round, as many as the program's first argument says, while such messages are pending. */
static inline void under_traffic(int argc, char **argv, int usual_rounds, void (*work)(int round))
{
    int rounds = argc > 1 ? atoi(argv[1]) : usual_rounds;
    for (int round = 0; round < rounds; round++) {
        begin_traffic(round);
        computing = 1;
        work(round);
        computing = 0;
        end_traffic();
    }
}

/* Arithmetic and nothing else: about a nanosecond or two a step. */
static inline double arithmetic(int steps)
{
    double x = 0.3;
    for (int i = 0; i < steps; i++)
        x = 3.7 * x * (1.0 - x);
    return x;
}

#endif
