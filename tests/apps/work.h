/*
 * What the programs with a known overlap share: computation in fixed amounts, a clock that the ranks of a machine have in
 * common, and a table of what a program measured itself, which the tests hold against what lapscope says.
 *
 * Computation is a number of rounds, found once at the start, and never "until a deadline": a deadline hides the time that
 * others take from the processor. How long it took is measured each time; that, not what was asked for, is the truth.
 */
#ifndef WORK_H
#define WORK_H

#include "check.h"

#include <stdint.h>
#include <time.h>

/* A function that is a call site of its own, whatever the optimiser likes. */
#define SITE static __attribute__((noinline))

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- computation -------------------------------------------------------------------------------------------------- */

static double rounds_per_ns;

static inline void do_rounds(int64_t rounds)
{
    static volatile double result;
    double x = 0.3;
    for (int64_t i = 0; i < rounds; i++)
        x = 3.7 * x * (1.0 - x);
    result = x;
    (void)result;
}

/* Finds how much work a nanosecond is while all ranks compute; the best of several, since others may run meanwhile. */
static inline void calibrate_work(void)
{
    enum { ROUNDS = 400000, TRIALS = 9 };
    int64_t best = INT64_MAX;
    for (int trial = 0; trial < TRIALS; trial++) {
        MPI_Barrier(MPI_COMM_WORLD);
        int64_t begin = now_ns();
        do_rounds(ROUNDS);
        int64_t took = now_ns() - begin;
        best = took < best ? took : best;
    }
    rounds_per_ns = (double)ROUNDS / (double)best;
}

/* Computes what takes `ns` on a processor of one's own; returns how long it took. */
static inline int64_t compute(int64_t ns)
{
    int64_t begin = now_ns();
    do_rounds((int64_t)((double)ns * rounds_per_ns));
    return now_ns() - begin;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Room for a message whose pages are there already. */
static inline char *make_buffer(size_t bytes)
{
    char *buffer = malloc(bytes + 1);
    CHECK(buffer);
    memset(buffer, 0, bytes + 1);
    return buffer;
}

/* A message is one value over and over, another one each time. */
static inline char value_of(int message)
{
    return (char)(message % 100 + 1);
}

static inline int is_message(const char *buffer, size_t bytes, int message)
{
    return bytes == 0 || (buffer[0] == value_of(message) && memcmp(buffer, buffer + 1, bytes - 1) == 0);
}

/* --- what is printed ---------------------------------------------------------------------------------------------- */

static inline int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static inline int64_t median(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_ns);
    return values[count / 2];
}

/* A line: a name, then a value for each iteration. */
static inline void print_values(const char *name, const int64_t *values, int count)
{
    printf("%s", name);
    for (int i = 0; i < count; i++)
        printf(" %lld", (long long)values[i]);
    puts("");
}

#endif
