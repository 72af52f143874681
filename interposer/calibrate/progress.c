/*
 * How much moves while a rank computes: it posts, computes for several times as long as the transfer takes alone, and
 * then waits. What it still has to wait for had not moved. What is timed lies in regions that MPI_Pcontrol marks; their
 * names say what was measured, and crates/measure/src/progress.rs reads them.
 */
#define _GNU_SOURCE
#include "module.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    LARGE = 4 << 20,  /* above every eager limit, and quick enough to be repeated */
    LEAST_LARGE = 256 << 10,
    SLOW_US = 30000,  /* a transfer that takes longer is made smaller */
    SMALL = 3 << 10,  /* eager everywhere: the control, of which a sender has nothing left to wait for */
    ROUNDS = 15,
    TIMES_ALONE = 3,  /* so much longer than a transfer alone is computed */
    LEAST_US = 200,   /* long against a message that says that the other side may begin */
    AWAY_US = 50,     /* after which a rank whose readiness has been seen has left MPI */
    NAME_BYTES = 96,
    TAG_PLAN = 31,
    TAG_READY,
    TAG_DATA,
    TAG_DONE
};

/* Who computes meanwhile; of collectives the first is rank 0 and the second everybody else. */
enum who { NOBODY, FIRST, SECOND, BOTH, KINDS };

static const char *const who_names[] = {"nobody", "first", "second", "both"};

enum what { SMALL_SEND, SEND, PUT, PUT_ALLOCATED, IALLREDUCE, IBCAST };

static const char *const what_names[] = {"small_send", "send", "put", "put_allocated", "iallreduce", "ibcast"};

/* What the first rank of a pair tells the second. 0 bytes: there is nothing more to come. */
struct plan {
    int what, who, bytes, compute_us, is_network;
};

enum { PLAN_INTS = sizeof(struct plan) / sizeof(int) };

/* Of memory of ours, and of memory that MPI allocated. Not every MPI can do that on every transport. */
static MPI_Win windows[2];
static int has_windows;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void compute(int us)
{
    double end = now_us() + us;
    while (now_us() < end)
        ;
}

static int does_first(const struct plan *plan)
{
    return plan->who == FIRST || plan->who == BOTH;
}

static int does_second(const struct plan *plan)
{
    return plan->who == SECOND || plan->who == BOTH;
}

static int is_put(const struct plan *plan)
{
    return plan->what == PUT || plan->what == PUT_ALLOCATED;
}

/* --- what is timed ------------------------------------------------------------------------------------------------ */

static void begin_timed(const struct plan *plan)
{
    char name[NAME_BYTES];
    const char *between = plan->what >= IALLREDUCE ? "all" : plan->is_network ? "network" : "node";
    snprintf(name, sizeof name, "moved %s %s %s %d %d", what_names[plan->what], who_names[plan->who], between,
             plan->bytes, plan->compute_us);
    MPI_Pcontrol(1, name);
}

static void end_timed(void)
{
    MPI_Pcontrol(-1, "moved");
}

/* What marking and a wait for what is complete cost, to be taken off. */
static void time_nothing(const struct bench *bench)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        MPI_Isend(bench->out, 0, MPI_BYTE, MPI_PROC_NULL, TAG_DATA, MPI_COMM_WORLD, &request);
        MPI_Pcontrol(1, "moved nothing");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        end_timed();
    }
}

/* --- a round between two ranks ------------------------------------------------------------------------------------ */

/*
 * The second says that it is ready by a synchronous send, so that the first has heard it before the second computes. The
 * first begins when the second has left MPI: what came at once might still be taken there.
 */
static void begin_together(const struct plan *plan)
{
    if (plan->who != NOBODY)
        compute(AWAY_US);
}

/* The wait is timed on the side that computes; where nobody does, the transfer on the second. */
static void send_first(const struct bench *bench, const struct plan *plan, int to)
{
    MPI_Request request;
    begin_together(plan);
    MPI_Isend(bench->out, plan->bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &request);
    if (does_first(plan))
        compute(plan->compute_us);
    if (plan->who == FIRST)
        begin_timed(plan);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (plan->who == FIRST)
        end_timed();
}

static void receive_second(const struct bench *bench, const struct plan *plan, int from)
{
    MPI_Request request;
    MPI_Irecv(bench->in, plan->bytes, MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, &request);
    if (plan->who == NOBODY)
        begin_timed(plan);
    MPI_Ssend(NULL, 0, MPI_BYTE, from, TAG_READY, MPI_COMM_WORLD);
    if (does_second(plan)) {
        compute(plan->compute_us);
        begin_timed(plan);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (plan->who != FIRST)
        end_timed();
}

/* The origin is timed from when the target begins to compute until the data are there. */
static void put_first(const struct bench *bench, const struct plan *plan, int to)
{
    MPI_Win window = windows[plan->what == PUT_ALLOCATED];
    begin_timed(plan);
    begin_together(plan);
    MPI_Put(bench->out, plan->bytes, MPI_BYTE, to, 0, plan->bytes, MPI_BYTE, window);
    MPI_Win_flush(to, window);
    end_timed();
}

/* Returns how long it took, microseconds. */
static double ask(const struct bench *bench, const struct plan *plan, int to)
{
    MPI_Send(plan, PLAN_INTS, MPI_INT, to, TAG_PLAN, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double begin = now_us();
    if (is_put(plan)) {
        put_first(bench, plan, to);
        MPI_Send(NULL, 0, MPI_BYTE, to, TAG_DONE, MPI_COMM_WORLD);
        return now_us() - begin;
    }
    send_first(bench, plan, to);
    MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return now_us() - begin;
}

/* Until it is told that the data are there, a target that does not compute waits in MPI. */
static void answer(const struct bench *bench, const struct plan *plan, int from)
{
    if (is_put(plan)) {
        MPI_Ssend(NULL, 0, MPI_BYTE, from, TAG_READY, MPI_COMM_WORLD);
        if (does_second(plan))
            compute(plan->compute_us);
        MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    receive_second(bench, plan, from);
    MPI_Send(NULL, 0, MPI_BYTE, from, TAG_DONE, MPI_COMM_WORLD);
}

/* --- all rounds between two ranks --------------------------------------------------------------------------------- */

/* The second time: the first one pays for what MPI sets up. */
static double alone_us(const struct bench *bench, struct plan plan, int to)
{
    plan.who = NOBODY;
    ask(bench, &plan, to);
    return ask(bench, &plan, to);
}

static int compute_us(double alone_us)
{
    return LEAST_US + (int)(TIMES_ALONE * alone_us);
}

/* An origin that computes says nothing of the target. */
static void rounds(const struct bench *bench, struct plan plan, int to, double seconds)
{
    double end = MPI_Wtime() + seconds;
    show_progress(bench, what_names[plan.what], plan.bytes);
    plan.compute_us = compute_us(alone_us(bench, plan, to));
    for (int i = 0; i < ROUNDS && MPI_Wtime() < end; i++)
        for (plan.who = NOBODY; plan.who < KINDS; plan.who++)
            if (plan.who == NOBODY || plan.who == SECOND || !is_put(&plan))
                ask(bench, &plan, to);
}

static void lead(const struct bench *bench, const struct pair *pair, double seconds)
{
    struct plan plan = {SEND, NOBODY, LARGE, 0, !strcmp(pair->what, "two nodes")};
    while (plan.bytes > LEAST_LARGE && alone_us(bench, plan, pair->b) > SLOW_US)
        plan.bytes /= 2;
    for (int last = has_windows ? PUT_ALLOCATED : SEND; plan.what <= last; plan.what++)
        rounds(bench, plan, pair->b, seconds / 4);
    plan.what = SMALL_SEND;
    plan.bytes = SMALL;
    rounds(bench, plan, pair->b, seconds / 4);
    plan.bytes = 0;
    MPI_Send(&plan, PLAN_INTS, MPI_INT, pair->b, TAG_PLAN, MPI_COMM_WORLD);
}

static void follow(const struct bench *bench, int peer)
{
    struct plan plan;
    while (MPI_Recv(&plan, PLAN_INTS, MPI_INT, peer, TAG_PLAN, MPI_COMM_WORLD, MPI_STATUS_IGNORE), plan.bytes > 0)
        answer(bench, &plan, peer);
}

/* --- collectives of all ranks ------------------------------------------------------------------------------------- */

static void post(const struct bench *bench, const struct plan *plan, MPI_Request *request)
{
    if (plan->what == IBCAST)
        MPI_Ibcast(bench->out, plan->bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
    else
        MPI_Iallreduce(bench->out, bench->in, plan->bytes / 8, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, request);
}

/* Timed on rank 0 where it alone computes, else on the last rank, which of a broadcast is a leaf. */
static void collective_round(const struct bench *bench, const struct plan *plan)
{
    int is_first = bench->rank == 0, is_timed = plan->who == FIRST ? is_first : bench->rank == bench->ranks - 1;
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_timed && plan->who == NOBODY)
        begin_timed(plan);
    post(bench, plan, &request);
    if (is_first ? does_first(plan) : does_second(plan))
        compute(plan->compute_us);
    if (is_timed && plan->who != NOBODY)
        begin_timed(plan);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (is_timed)
        end_timed();
}

static double collective_alone_us(const struct bench *bench, int what, int bytes)
{
    struct plan plan = {what, NOBODY, bytes, 0, 0};
    double took = 0, most = 0;
    for (int i = 0; i < 2; i++) {
        double begin = now_us();
        collective_round(bench, &plan);
        took = now_us() - begin;
    }
    MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void collective_rounds(const struct bench *bench, int what, double end)
{
    int bytes = LARGE;
    double alone = collective_alone_us(bench, what, bytes);
    for (; alone > SLOW_US && bytes > LEAST_LARGE; alone = collective_alone_us(bench, what, bytes))
        bytes /= 2;
    show_progress(bench, what_names[what], bytes);
    struct plan plan = {what, NOBODY, bytes, compute_us(alone), 0};
    for (int i = 0; i < ROUNDS; i++) {
        int goes_on = MPI_Wtime() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (plan.who = NOBODY; goes_on && plan.who < KINDS; plan.who++)
            collective_round(bench, &plan);
    }
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* On every rank or on none. */
static void open_windows(const struct bench *bench)
{
    char *allocated;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int is_made = MPI_Win_create(bench->in, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[0]) == MPI_SUCCESS;
    MPI_Allreduce(&is_made, &has_windows, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (has_windows) {
        is_made = MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &windows[1]) == MPI_SUCCESS;
        MPI_Allreduce(&is_made, &has_windows, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (has_windows)
        memset(allocated, 1, LARGE);
    for (int i = 0; i < 2 && has_windows; i++)
        MPI_Win_lock_all(0, windows[i]);
}

static void close_windows(void)
{
    for (int i = 0; i < 2 && has_windows; i++) {
        MPI_Win_unlock_all(windows[i]);
        MPI_Win_free(&windows[i]);
    }
}

void measure_progress(struct bench *bench, double seconds)
{
    time_nothing(bench);
    if (bench->ranks == 1)
        return;
    open_windows(bench);
    each_kind_of_pair(bench, seconds * 0.3, lead, follow);
    close_windows();
    for (int what = IALLREDUCE; what <= IBCAST; what++)
        collective_rounds(bench, what, MPI_Wtime() + seconds * 0.2);
}
