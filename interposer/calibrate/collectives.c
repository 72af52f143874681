/* Blocking collectives of all ranks over a spread of sizes, with a barrier before each, so that all enter together. */
#include "module.h"

#include <mpi.h>

enum { PASSES = 3, LEAST = 2 * PASSES, MOST = 12 * PASSES, MAX_SIZES = 32, COLLECTIVE_BYTES = 4 << 20, LATE = 3 };

struct collective {
    const char *name;
    /* `bytes` is what the largest buffer of a rank holds, a multiple of 8 for each rank. */
    void (*run)(const struct bench *bench, int bytes);
};

static int per_rank(const struct bench *bench, int bytes)
{
    return bytes / bench->ranks;
}

static void barrier(const struct bench *bench, int bytes)
{
    (void)bench;
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(const struct bench *bench, int bytes)
{
    MPI_Bcast(bench->out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(const struct bench *bench, int bytes)
{
    MPI_Reduce(bench->out, bench->in, bytes / 8, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

static void allreduce(const struct bench *bench, int bytes)
{
    MPI_Allreduce(bench->out, bench->in, bytes / 8, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void allgather(const struct bench *bench, int bytes)
{
    int block = per_rank(bench, bytes);
    MPI_Allgather(bench->out, block, MPI_BYTE, bench->in, block, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(const struct bench *bench, int bytes)
{
    int block = per_rank(bench, bytes);
    MPI_Alltoall(bench->out, block, MPI_BYTE, bench->in, block, MPI_BYTE, MPI_COMM_WORLD);
}

static void gather(const struct bench *bench, int bytes)
{
    int block = per_rank(bench, bytes);
    MPI_Gather(bench->out, block, MPI_BYTE, bench->in, block, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(const struct bench *bench, int bytes)
{
    int block = per_rank(bench, bytes);
    MPI_Scatter(bench->out, block, MPI_BYTE, bench->in, block, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const struct collective all[] = {
    {"Bcast", bcast},         {"Reduce", reduce},     {"Allreduce", allreduce}, {"Allgather", allgather},
    {"Alltoall", alltoall}, {"Gather", gather}, {"Scatter", scatter},     {"Barrier", barrier},
};

/* What rank 0 decides. */
static int agree(int decision)
{
    MPI_Bcast(&decision, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return decision;
}

/* Once unrecorded. Returns how often in each pass then; 0: this size takes too long. */
static int warm_up(const struct bench *bench, const struct collective *collective, int bytes, double left_s,
                   double budget_s, double *once_s)
{
    MPI_Pcontrol(0);
    int count = agree(*once_s * (LEAST + 1) < left_s);
    if (count) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        collective->run(bench, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        *once_s = MPI_Wtime() - begin;
        count = agree(repetitions(budget_s, *once_s, LEAST, MOST) / PASSES);
    }
    MPI_Pcontrol(1);
    return count;
}

/* `counts`: how often each size, which the first pass finds out. */
static void sweep(const struct bench *bench, const struct collective *collective, int pass, int *counts, double seconds)
{
    double begin = MPI_Wtime(), once_s = 0;
    for (long bytes = 8L * bench->ranks; bytes <= COLLECTIVE_BYTES; bytes *= 2, counts++) {
        if (pass == 0)
            *counts = warm_up(bench, collective, (int)bytes, begin + LATE * seconds - MPI_Wtime(), seconds / 20, &once_s);
        if (!*counts)
            break;
        show_progress(bench, collective->name, bytes);
        for (int i = 0; i < *counts; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            collective->run(bench, (int)bytes);
        }
        if (collective->run == barrier)
            break;
    }
}

void measure_collectives(struct bench *bench, double seconds)
{
    enum { COLLECTIVES = sizeof all / sizeof all[0] };
    int counts[COLLECTIVES][MAX_SIZES] = {{0}};
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < COLLECTIVES; i++)
            sweep(bench, &all[i], pass, counts[i], seconds / COLLECTIVES);
}
