/*
 * From which size on sends wait: one rank of a pair sends and waits at once, the other is elsewhere for much longer
 * than a transfer takes. First sizes far apart, then more and more closely where it goes over from one to the other,
 * then several messages at a time. What it all says is worked out from what lapscope records; here only as much as it
 * takes to know which sizes to try next.
 */
#define _GNU_SOURCE
#include "module.h"

#include <math.h>
#include <mpi.h>
#include <time.h>

enum {
    SMALLEST = 64,
    LARGEST = 4 << 20,
    STEP = 4,
    TIMES = 4,    /* of a transfer to a receiver who waits for it */
    ROUNDS = 3,   /* of each kind of receiver */
    AT_ONCE = 32, /* most messages at a time */
    CLOSE = 64,   /* two sizes are close enough with so many bytes between them, or this part of them */
    LONGEST_US = 200000,
    TAG_PLAN = 11,
    TAG_READY,
    TAG_MESSAGE,
    TAG_DONE
};

/* Where the receiver is when a message is sent. */
enum receiver { WAITS, POSTS_FIRST, POSTS_LATE, LOOKS_FIRST, ENDS };

/* What the sender tells the receiver: a round of `count` messages. */
struct plan {
    int receiver, bytes, count, away_us;
};

enum { PLAN_INTS = sizeof(struct plan) / sizeof(int) };

/* How many messages were complete without the receiver inside MPI, and without their receive. */
struct found {
    int sends, early, looked, kept;
};

struct probe {
    const struct bench *bench;
    const struct pair *pair;
    double end; /* by MPI_Wtime: no new size after that */
    double typical_s;
};

/* --- one round ---------------------------------------------------------------------------------------------------- */

static void stay_away(int us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

/* The first look may only fetch the message, the next one then find it. */
static void look(int from)
{
    int found = 0;
    for (int i = 0; i < 10 && !found; i++)
        MPI_Iprobe(from, TAG_MESSAGE, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void post(const struct bench *bench, const struct plan *plan, int from, MPI_Request *requests)
{
    for (int i = 0; i < plan->count; i++)
        MPI_Irecv(bench->in + (size_t)i * (MAX_BYTES / AT_ONCE), plan->bytes, MPI_BYTE, from, TAG_MESSAGE,
                  MPI_COMM_WORLD, &requests[i]);
}

static void receive_round(const struct bench *bench, const struct plan *plan, int from)
{
    MPI_Request requests[AT_ONCE];
    int is_posted = plan->receiver == WAITS || plan->receiver == POSTS_FIRST;
    if (is_posted)
        post(bench, plan, from, requests);
    MPI_Send(NULL, 0, MPI_BYTE, from, TAG_READY, MPI_COMM_WORLD);
    if (plan->receiver != WAITS)
        stay_away(plan->away_us);
    if (plan->receiver == LOOKS_FIRST) {
        look(from);
        stay_away(plan->away_us);
    }
    if (!is_posted)
        post(bench, plan, from, requests);
    for (int i = 0; i < plan->count; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, from, TAG_DONE, MPI_COMM_WORLD);
}

/* Returns how long it took until the receiver had the last message. */
static double send_round(const struct probe *probe, const struct plan *plan, struct found *found)
{
    MPI_Request requests[AT_ONCE];
    int to = probe->pair->b;
    MPI_Send(plan, PLAN_INTS, MPI_INT, to, TAG_PLAN, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double begin = MPI_Wtime(), away_s = plan->away_us * 1e-6;
    for (int i = 0; i < plan->count; i++)
        MPI_Isend(probe->bench->out + (size_t)i * (MAX_BYTES / AT_ONCE), plan->bytes, MPI_BYTE, to, TAG_MESSAGE,
                  MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < plan->count; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        double took = MPI_Wtime() - begin;
        found->sends++;
        found->early += took < away_s / 2;
        found->looked += plan->receiver == LOOKS_FIRST;
        found->kept += plan->receiver == LOOKS_FIRST && took < away_s * 3 / 2;
    }
    MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Wtime() - begin;
}

/* --- a size ------------------------------------------------------------------------------------------------------- */

/* Long against what a transfer takes, measured until the receiver's answer came back, and against what others may take
 * of the sender's processor. */
static int away_us(const struct probe *probe)
{
    double us = 10000 + 4e6 * probe->typical_s;
    return us < LONGEST_US ? (int)us : LONGEST_US;
}

static void time_transfers(struct probe *probe, int bytes)
{
    struct found unused = {0, 0, 0, 0};
    struct plan plan = {WAITS, bytes, 1, 0};
    double all = 0;
    for (int i = 0; i < TIMES; i++)
        all += send_round(probe, &plan, &unused);
    probe->typical_s = all / TIMES;
}

static struct found try_size(struct probe *probe, int bytes, int count, int rounds)
{
    struct found found = {0, 0, 0, 0};
    show_progress(probe->bench, probe->pair->what, bytes);
    time_transfers(probe, bytes);
    for (int i = 0; i < rounds; i++)
        for (int receiver = POSTS_FIRST; receiver <= LOOKS_FIRST; receiver++) {
            struct plan plan = {receiver, bytes, count, away_us(probe)};
            send_round(probe, &plan, &found);
        }
    return found;
}

static int most_early(const struct found *found)
{
    return 2 * found->early > found->sends;
}

static int most_kept(const struct found *found)
{
    return 2 * found->kept > found->looked;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* The largest size that did not wait, and the smallest one after it; 0: none. */
struct edge {
    int low, high;
};

static void move(struct edge *edge, int bytes, int does_not_wait)
{
    if (does_not_wait)
        *edge = (struct edge){bytes, 0};
    else if (!edge->high)
        edge->high = bytes;
}

/* Until the two are close. */
static void close_in(struct probe *probe, struct edge *edge, int (*does_not_wait)(const struct found *))
{
    while (edge->low && edge->high - edge->low > CLOSE && edge->high - edge->low > edge->low / CLOSE &&
           MPI_Wtime() < probe->end) {
        int middle = (int)sqrt((double)edge->low * edge->high);
        struct found found = try_size(probe, middle, 1, ROUNDS);
        if (does_not_wait(&found))
            edge->low = middle;
        else
            edge->high = middle;
    }
}

/* Returns the largest size that needs no receive; 0: none. */
static int sweep(struct probe *probe)
{
    struct edge early = {0, 0}, kept = {0, 0};
    for (int bytes = SMALLEST; bytes <= LARGEST && MPI_Wtime() < probe->end; bytes *= STEP) {
        struct found found = try_size(probe, bytes, 1, ROUNDS);
        /* larger than one that waited: hardly */
        if ((early.high && most_early(&found)) || (kept.high && most_kept(&found)))
            found = try_size(probe, bytes, 1, ROUNDS);
        move(&early, bytes, most_early(&found));
        move(&kept, bytes, most_kept(&found));
    }
    close_in(probe, &kept, most_kept);
    if (early.low != kept.low)
        close_in(probe, &early, most_early);
    return kept.low;
}

/* 2, 4, ... messages of sizes that one by one do not wait. */
static void try_several(struct probe *probe, int kept)
{
    int most = MAX_BYTES / AT_ONCE;
    for (int part = 1; part <= 4; part *= 4) {
        int bytes = kept / part < most ? kept / part : most;
        for (int count = 2; bytes > 0 && count <= AT_ONCE && MPI_Wtime() < probe->end; count *= 2)
            try_size(probe, bytes, count, 1);
    }
}

/* --- a pair ------------------------------------------------------------------------------------------------------- */

static void lead(const struct bench *bench, const struct pair *pair, double seconds)
{
    double begin = MPI_Wtime();
    struct probe probe = {bench, pair, begin + seconds * 0.7, 0};
    int kept = sweep(&probe);
    probe.end = begin + seconds;
    try_several(&probe, kept);
    struct plan last = {ENDS, 0, 0, 0};
    MPI_Send(&last, PLAN_INTS, MPI_INT, pair->b, TAG_PLAN, MPI_COMM_WORLD);
}

static void follow(const struct bench *bench, int from)
{
    struct plan plan;
    while (MPI_Recv(&plan, PLAN_INTS, MPI_INT, from, TAG_PLAN, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
           plan.receiver != ENDS)
        receive_round(bench, &plan, from);
}

void probe_limits(struct bench *bench, double seconds)
{
    each_kind_of_pair(bench, seconds, lead, follow);
}
