/*
 * Parametrised round trips between two ranks, PRTT(n, d, s) of Hoefler, Lichei and Rehm 2007: the one sends n messages of s
 * bytes with a delay of d between them, the other answers with one such message when it has them all. It has posted its
 * receives and waits. What they say of LogGPS is worked out from what lapscope records, which knows them by their tags
 * (crates/measure/src/loggps/read.rs); the recorded moments say n and d.
 */
#define _GNU_SOURCE
#include "module.h"

#include <math.h>
#include <mpi.h>
#include <time.h>

enum {
    PER_OCTAVE = 2,
    PASSES = 3,
    MOST = 8,  /* repetitions of a size in each pass */
    BURST = 8, /* n */
    ROOM = MAX_BYTES / BURST,
    SMALLEST = 64, /* sizes that are tried for S, and how near to it */
    STEP = 4,
    CLOSE = 64,
    LATE_US = 500,
    LONGEST_US = 20000,
    TRIES = 3,
    /* tags, of which the records tell what is what */
    TAG_ONE = 20481, /* PRTT(1, 0, s) */
    TAG_BURST,       /* PRTT(n, 0, s) */
    TAG_DELAYED,     /* PRTT(n, d, s) */
    TAG_AWAY,        /* PRTT(1, 0, s), and the answer is taken when it has long been there */
    TAG_LATE,        /* the receiver first stays away, looks, stays away again, and only then receives: S */
    TAG_ANSWER,
    TAG_READY,
    TAG_PLAN
};

/* What the one tells the other. 0 messages: there is nothing more to come. */
struct plan {
    int tag, bytes, messages, repetitions, delay_us;
};

enum { PLAN_INTS = sizeof(struct plan) / sizeof(int) };

/* The measurement between the one, which paces, and the other. */
struct exchange {
    const struct bench *bench;
    const struct pair *pair;
    double end;      /* by MPI_Wtime: nothing new after that */
    int eager_bytes; /* larger ones wait for their receive */
};

/* --- one exchange ------------------------------------------------------------------------------------------------- */

static void compute(double seconds)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < seconds)
        ;
}

static void stay_away(int us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

/* Returns how long it took, seconds. */
static double send_and_await(const struct bench *bench, const struct plan *plan, int peer)
{
    MPI_Request requests[BURST];
    MPI_Status statuses[BURST]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array that is too small */
    MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(3e-6); /* until the other side waits */
    double begin = MPI_Wtime();
    for (int i = 0; i < plan->messages; i++) {
        if (i > 0 && plan->delay_us)
            compute(plan->delay_us * 1e-6);
        MPI_Isend(bench->out, plan->bytes, MPI_BYTE, peer, plan->tag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(plan->messages, requests, statuses);
    if (plan->tag == TAG_AWAY)
        compute(plan->delay_us * 1e-6);
    MPI_Recv(bench->in, plan->bytes, MPI_BYTE, peer, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Wtime() - begin;
}

/* The first look may only fetch the message, the next one then find it. */
static void look(int peer)
{
    int found = 0;
    for (int i = 0; i < 10 && !found; i++)
        MPI_Iprobe(peer, TAG_LATE, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void stay_away_and_look(const struct plan *plan, int peer)
{
    stay_away(plan->delay_us);
    look(peer);
    stay_away(plan->delay_us);
}

static void receive_and_answer(const struct bench *bench, const struct plan *plan, int peer)
{
    MPI_Request requests[BURST];
    MPI_Status statuses[BURST];
    int is_late = plan->tag == TAG_LATE;
    if (is_late) {
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_READY, MPI_COMM_WORLD);
        stay_away_and_look(plan, peer);
    }
    for (int i = 0; i < plan->messages; i++)
        MPI_Irecv(bench->in + (size_t)i * ROOM, plan->bytes, MPI_BYTE, peer, plan->tag, MPI_COMM_WORLD, &requests[i]);
    if (!is_late)
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_READY, MPI_COMM_WORLD);
    MPI_Waitall(plan->messages, requests, statuses);
    MPI_Send(bench->out, plan->bytes, MPI_BYTE, peer, TAG_ANSWER, MPI_COMM_WORLD);
}

/* Returns how long the quickest of them took, seconds. */
static double repeat(const struct exchange *exchange, struct plan plan)
{
    int peer = exchange->pair->b;
    double least_s = HUGE_VAL;
    MPI_Send(&plan, PLAN_INTS, MPI_INT, peer, TAG_PLAN, MPI_COMM_WORLD);
    for (int i = 0; i < plan.repetitions; i++)
        least_s = fmin(least_s, send_and_await(exchange->bench, &plan, peer));
    return least_s;
}

/* --- S ------------------------------------------------------------------------------------------------------------ */

/* Whether a send was complete without its receive, whose process stays away for so long each time. */
static int is_kept(const struct exchange *exchange, int bytes, int away_us)
{
    MPI_Request request;
    int peer = exchange->pair->b;
    struct plan plan = {TAG_LATE, bytes, 1, 1, away_us};
    MPI_Send(&plan, PLAN_INTS, MPI_INT, peer, TAG_PLAN, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double begin = MPI_Wtime();
    MPI_Isend(exchange->bench->out, bytes, MPI_BYTE, peer, TAG_LATE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    double took = MPI_Wtime() - begin;
    MPI_Recv(exchange->bench->in, bytes, MPI_BYTE, peer, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return took < away_us * 1.5e-6;
}

/* One that was is proof; one that was not may have lacked its processor, so the next one has longer. */
static int is_ever_kept(const struct exchange *exchange, int bytes)
{
    double us = LATE_US + 4e6 * repeat(exchange, (struct plan){TAG_ONE, bytes, 1, 2, 0});
    int kept = 0;
    for (int try = 0; try < TRIES && !kept; try++, us *= 3)
        kept = is_kept(exchange, bytes, us < LONGEST_US ? (int)us : LONGEST_US);
    return kept;
}

/* The largest size that needs no receive: sizes far apart first, then ever closer. As far as is known: where no send was
 * seen to wait, all of them. */
static int find_eager_limit(const struct exchange *exchange)
{
    int low = 0, high = SMALLEST;
    while (high <= ROOM && MPI_Wtime() < exchange->end && is_ever_kept(exchange, high)) {
        low = high;
        high *= STEP;
    }
    if (high > ROOM || MPI_Wtime() >= exchange->end)
        return ROOM;
    while (low && high - low > CLOSE && high - low > low / CLOSE && MPI_Wtime() < exchange->end) {
        int middle = (int)sqrt((double)low * high);
        if (is_ever_kept(exchange, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* All kinds of exchanges of one size. Returns 0 where there is no time for more. */
static int exchange_size(const struct exchange *exchange, int bytes, double budget_s)
{
    double left_s = exchange->end - MPI_Wtime();
    if (left_s < 0)
        return 0;
    show_progress(exchange->bench, exchange->pair->what, bytes);
    double once_s = repeat(exchange, (struct plan){TAG_ONE, bytes, 1, 2, 0});
    if (once_s * 4 * BURST > left_s)
        return 0;
    int is_eager = bytes <= exchange->eager_bytes;
    /* longer than the others take, so that nothing of a message is left to do */
    int delay_us = (int)(1 + 2e6 * once_s);
    double all_s = once_s * (1 + BURST) + (is_eager ? delay_us * 1e-6 * (BURST + 1) : 0);
    int count = repetitions(budget_s, all_s, 1, MOST);
    repeat(exchange, (struct plan){TAG_ONE, bytes, 1, count, 0});
    repeat(exchange, (struct plan){TAG_BURST, bytes, BURST, count, 0});
    if (is_eager) {
        repeat(exchange, (struct plan){TAG_DELAYED, bytes, BURST, count, delay_us});
        repeat(exchange, (struct plan){TAG_AWAY, bytes, 1, count, delay_us});
    }
    return 1;
}

/* In several passes, so that what disturbs the machine for a while does not hit all exchanges of one size. */
static void exchange_sizes(const struct exchange *exchange, double seconds)
{
    int sizes = 1;
    while (sweep_size(sizes + 1, PER_OCTAVE, ROOM) > 0)
        sizes++;
    double budget_s = seconds / PASSES / sizes;
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 1; k <= sizes; k++)
            if (!exchange_size(exchange, (int)sweep_size(k, PER_OCTAVE, ROOM), budget_s))
                break;
}

/* --- a pair ------------------------------------------------------------------------------------------------------- */

static void lead(const struct bench *bench, const struct pair *pair, double seconds)
{
    double begin = MPI_Wtime();
    struct exchange exchange = {bench, pair, begin + seconds * 0.6, 0};
    exchange.eager_bytes = find_eager_limit(&exchange);
    exchange.end = begin + 1.5 * seconds;
    exchange_sizes(&exchange, begin + seconds - MPI_Wtime());
    struct plan last = {TAG_PLAN, 0, 0, 0, 0};
    MPI_Send(&last, PLAN_INTS, MPI_INT, pair->b, TAG_PLAN, MPI_COMM_WORLD);
}

static void follow(const struct bench *bench, int peer)
{
    struct plan plan;
    while (MPI_Recv(&plan, PLAN_INTS, MPI_INT, peer, TAG_PLAN, MPI_COMM_WORLD, MPI_STATUS_IGNORE), plan.messages > 0)
        for (int i = 0; i < plan.repetitions; i++)
            receive_and_answer(bench, &plan, peer);
}

void measure_round_trips(struct bench *bench, double seconds)
{
    each_kind_of_pair(bench, seconds, lead, follow);
}
