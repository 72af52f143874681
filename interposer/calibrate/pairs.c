/*
 * Which ranks exchange messages, and how the others wait meanwhile.
 */
#define _GNU_SOURCE
#include "module.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HOST_BYTES = 256 };

static void add(struct pair *pairs, int *count, int a, int b, const char *what)
{
    for (int i = 0; i < *count; i++)
        if (pairs[i].a == a && pairs[i].b == b)
            return;
    pairs[(*count)++] = (struct pair){a, b, what};
}

/* The first rank from `from` on that is (or is not) on the host of rank `a`, looking in direction `step`; -1: none. */
static int find(const struct bench *bench, const char *hosts, int a, int from, int step, int same)
{
    for (int b = from; b >= 0 && b < bench->ranks; b += step)
        if (b != a && same == !strcmp(hosts + b * HOST_BYTES, hosts + a * HOST_BYTES))
            return b;
    return -1;
}

int choose_pairs(const struct bench *bench, struct pair *pairs)
{
    int count = 0;
    char own[HOST_BYTES] = "", *hosts = calloc((size_t)bench->ranks, HOST_BYTES);
    if (!hosts)
        MPI_Abort(MPI_COMM_WORLD, 1);
    gethostname(own, sizeof own - 1);
    MPI_Allgather(own, HOST_BYTES, MPI_CHAR, hosts, HOST_BYTES, MPI_CHAR, MPI_COMM_WORLD);
    add(pairs, &count, 0, 0, "one rank");
    int a = 0; /* the first rank that is not alone on its node */
    while (a < bench->ranks && find(bench, hosts, a, 0, 1, 1) < 0)
        a++;
    if (a < bench->ranks) {
        add(pairs, &count, a, find(bench, hosts, a, 0, 1, 1), "one node");
        add(pairs, &count, a, find(bench, hosts, a, bench->ranks - 1, -1, 1), "one node");
    }
    if (find(bench, hosts, 0, 0, 1, 0) > 0) {
        add(pairs, &count, 0, find(bench, hosts, 0, 0, 1, 0), "two nodes");
        add(pairs, &count, 0, find(bench, hosts, 0, bench->ranks - 1, -1, 0), "two nodes");
    }
    free(hosts);
    return count;
}

void each_kind_of_pair(const struct bench *bench, double seconds, lead_fn *lead, follow_fn *follow)
{
    struct pair pairs[MAX_PAIRS], chosen[MAX_PAIRS];
    int count = choose_pairs(bench, pairs), kinds = 0;
    for (int i = 0; i < count; i++)
        if (pairs[i].a != pairs[i].b && (!kinds || strcmp(pairs[i].what, chosen[kinds - 1].what)))
            chosen[kinds++] = pairs[i];
    for (int i = 0; i < kinds; i++) {
        rest_until_all_are_here();
        if (bench->rank == chosen[i].a)
            lead(bench, &chosen[i], seconds);
        if (bench->rank == chosen[i].b)
            follow(bench, chosen[i].a);
    }
    rest_until_all_are_here();
}

void rest_until_all_are_here(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}
