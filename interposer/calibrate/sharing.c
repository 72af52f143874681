/*
 * What messages share on their way: 1, 2, 4 and 8 of a size at once from one rank to another, and as many each way. The
 * receivers have posted all their receives. lapscope records them; crates/measure/src/reference/sharing.rs knows them by
 * their tag, and by how many one call waits for.
 */
#include "module.h"

#include <mpi.h>
#include <string.h>

enum {
    AT_ONCE = 8,
    LEAST = 3,
    MOST = 30, /* repetitions of each kind */
    LATE = 3,  /* over so many times the planned time nothing more is begun */
    /* tags, of which the records tell what is what */
    TAG_SHARED = 20501,
    TAG_SHARED_READY,
    TAG_SHARED_PLAN
};

/* The largest says most of what is shared; over a slow link there may be no time for the others. */
static const int sizes[] = {MAX_BYTES / AT_ONCE, 512 << 10, 64 << 10};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* What the one tells the other. 0 messages: there is nothing more to come. */
struct plan {
    int bytes, messages, both_ways, repetitions;
};

enum { PLAN_INTS = sizeof(struct plan) / sizeof(int) };

/* Returns how long it took, seconds. `leads`: this rank begins when the other is ready. */
static double exchange(const struct bench *bench, const struct plan *plan, int peer, int leads)
{
    MPI_Request requests[2 * AT_ONCE];
    MPI_Status statuses[2 * AT_ONCE]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array that is too small */
    int count = 0;
    for (int i = 0; i < plan->messages && (!leads || plan->both_ways); i++)
        MPI_Irecv(bench->in + (size_t)i * plan->bytes, plan->bytes, MPI_BYTE, peer, TAG_SHARED, MPI_COMM_WORLD,
                  &requests[count++]);
    if (leads)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_SHARED_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_SHARED_READY, MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < plan->messages && (leads || plan->both_ways); i++)
        MPI_Isend(bench->out + (size_t)i * plan->bytes, plan->bytes, MPI_BYTE, peer, TAG_SHARED, MPI_COMM_WORLD,
                  &requests[count++]);
    MPI_Waitall(count, requests, statuses);
    return MPI_Wtime() - begin;
}

static double ask(const struct bench *bench, const struct plan *plan, int peer)
{
    double last_s = 0;
    MPI_Send(plan, PLAN_INTS, MPI_INT, peer, TAG_SHARED_PLAN, MPI_COMM_WORLD);
    for (int i = 0; i < plan->repetitions; i++)
        last_s = exchange(bench, plan, peer, 1);
    return last_s;
}

static void lead(const struct bench *bench, const struct pair *pair, double seconds)
{
    double end = MPI_Wtime() + LATE * seconds, budget_s = seconds / SIZES;
    for (int k = 0; k < SIZES; k++) {
        show_progress(bench, "what messages share", sizes[k]);
        /* the first is the one that pays for what MPI sets up */
        double once_s = ask(bench, &(struct plan){sizes[k], AT_ONCE, 1, 1}, pair->b);
        int count = repetitions(budget_s, 3 * once_s, LEAST, MOST);
        for (int messages = 1; messages <= AT_ONCE && MPI_Wtime() < end; messages *= 2)
            for (int both_ways = 0; both_ways <= 1; both_ways++)
                ask(bench, &(struct plan){sizes[k], messages, both_ways, count}, pair->b);
    }
    ask(bench, &(struct plan){0, 0, 0, 0}, pair->b);
}

static void follow(const struct bench *bench, int peer)
{
    struct plan plan;
    while (MPI_Recv(&plan, PLAN_INTS, MPI_INT, peer, TAG_SHARED_PLAN, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
           plan.messages > 0)
        for (int i = 0; i < plan.repetitions; i++)
            exchange(bench, &plan, peer, 0);
}

void measure_sharing(struct bench *bench, double seconds)
{
    each_kind_of_pair(bench, seconds, lead, follow);
}
