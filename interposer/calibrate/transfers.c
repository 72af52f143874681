/*
 * Messages back and forth between two ranks, over a spread of sizes. The receiver has posted its receive and waits for
 * it when the sender begins: nothing lies between post and completion but the transfer. lapscope records them; which
 * time is whose is worked out from the records.
 */
#include "module.h"

#include <mpi.h>
#include <stdlib.h>

enum {
    PER_OCTAVE = 4,
    PASSES = 3,
    LEAST = PASSES, /* round trips of a size: six messages */
    MOST = 20 * PASSES,
    MAX_SIZES = 128,
    LATE = 3, /* over so many times the planned time only what is small is measured: slow links, busy machines */
    TAG_DATA = 1,
    TAG_READY,
    TAG_PLAN
};

/* --- one pair ----------------------------------------------------------------------------------------------------- */

/* Until the other side, which has just said that it is ready, waits. */
static void let_wait(void)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < 3e-6)
        ;
}

static void one_way(const struct bench *bench, int from, int to, int bytes)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (bench->rank == to)
        MPI_Irecv(bench->in, bytes, MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, &request);
    if (from != to && bench->rank == to)
        MPI_Send(NULL, 0, MPI_BYTE, from, TAG_READY, MPI_COMM_WORLD);
    if (from != to && bench->rank == from) {
        MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        let_wait();
    }
    if (bench->rank == from)
        MPI_Send(bench->out, bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
    if (bench->rank == to)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void round_trip(const struct bench *bench, const struct pair *pair, int bytes)
{
    one_way(bench, pair->a, pair->b, bytes);
    one_way(bench, pair->b, pair->a, bytes);
}

/* What `a` decides. */
static int agree(const struct bench *bench, const struct pair *pair, int decision)
{
    if (pair->a != pair->b && bench->rank == pair->a)
        MPI_Send(&decision, 1, MPI_INT, pair->b, TAG_PLAN, MPI_COMM_WORLD);
    if (pair->a != pair->b && bench->rank == pair->b)
        MPI_Recv(&decision, 1, MPI_INT, pair->a, TAG_PLAN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return decision;
}

/* Once for the caches and what MPI sets up at a first time: not recorded. Returns how often in each pass then; 0: this
 * size takes too long. */
static int warm_up(const struct bench *bench, const struct pair *pair, int bytes, double left_s, double budget_s,
                   double *once_s)
{
    MPI_Pcontrol(0);
    int count = agree(bench, pair, *once_s * (LEAST + 1) < left_s);
    if (count) {
        double begin = MPI_Wtime();
        round_trip(bench, pair, bytes);
        *once_s = MPI_Wtime() - begin;
        count = agree(bench, pair, repetitions(budget_s, *once_s, LEAST, MOST) / PASSES);
    }
    MPI_Pcontrol(1);
    return count;
}

/* In several passes, so that what disturbs the machine for a while does not hit all messages of one size. */
static void measure_pair(const struct bench *bench, const struct pair *pair, double seconds)
{
    double begin = MPI_Wtime(), once_s = 0;
    int counts[MAX_SIZES] = {0};
    for (int pass = 0; pass < PASSES; pass++) {
        for (int k = 0; k < MAX_SIZES && sweep_size(k, PER_OCTAVE, MAX_BYTES) >= 0; k++) {
            int bytes = (int)sweep_size(k, PER_OCTAVE, MAX_BYTES);
            if (pass == 0)
                counts[k] = warm_up(bench, pair, bytes, begin + LATE * seconds - MPI_Wtime(), seconds / 150, &once_s);
            if (!counts[k])
                break;
            show_progress(bench, pair->what, bytes);
            for (int i = 0; i < counts[k]; i++)
                round_trip(bench, pair, bytes);
        }
    }
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

void measure_transfers(struct bench *bench, double seconds)
{
    struct pair pairs[MAX_PAIRS];
    int count = choose_pairs(bench, pairs);
    for (int i = 0; i < count; i++) {
        /* to oneself is quick */
        double share = pairs[i].a == pairs[i].b ? 0.15 : 0.85 / (count - 1);
        if (bench->rank == pairs[i].a || bench->rank == pairs[i].b)
            measure_pair(bench, &pairs[i], seconds * share);
        rest_until_all_are_here();
    }
}
