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

/* The memory that the process has. */
static inline long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kb);
    fclose(file);
    return kb;
}

/* Whether one of the arguments is this word. */
static inline int is_asked(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return 1;
    return 0;
}

/* Whether a program that has a cure is asked to run with it. */
static inline int is_cured(int argc, char **argv)
{
    return is_asked(argc, argv, "cured");
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

static inline int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline int64_t median(const int64_t *values, int count)
{
    int64_t sorted[100];
    CHECK(count <= 100);
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ns);
    return sorted[count / 2];
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

/*
 * What a message takes from rank 0 to rank 1 with nothing to hide behind, from the post of the send to the end of the
 * receive: `took` for each of `times`, on both ranks; returns the median. The receiver is waiting before the sender posts.
 */
static inline int64_t rehearse(char *buffer, size_t bytes, int times, int64_t *took)
{
    enum { TOKEN = 100, REHEARSED, AHEAD_NS = 200000 };
    int sends = comm_rank(MPI_COMM_WORLD) == 0;
    for (int i = 0; i < times; i++) {
        MPI_Request request;
        int64_t begin = 0;
        memset(buffer, sends ? value_of(i) : 0, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        if (sends) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(AHEAD_NS);
            begin = now_ns();
            MPI_Isend(buffer, (int)bytes, MPI_BYTE, 1, REHEARSED, MPI_COMM_WORLD, &request);
        } else {
            MPI_Irecv(buffer, (int)bytes, MPI_BYTE, 0, REHEARSED, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        took[i] = now_ns() - begin;
        CHECK(is_message(buffer, bytes, i));
        if (sends)
            MPI_Send(&begin, 1, MPI_INT64_T, 1, TOKEN, MPI_COMM_WORLD);
        else
            MPI_Recv(&begin, 1, MPI_INT64_T, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        took[i] -= sends ? 0 : begin;
    }
    MPI_Bcast(took, times, MPI_INT64_T, 1, MPI_COMM_WORLD);
    return median(took, times);
}

/* --- what is printed ---------------------------------------------------------------------------------------------- */

/* A line: a name, then a value for each iteration. */
static inline void print_values(const char *name, const int64_t *values, int count)
{
    printf("%s", name);
    for (int i = 0; i < count; i++)
        printf(" %lld", (long long)values[i]);
    puts("");
}

/* A message to itself, from a path that the digits of `way` say. */
SITE __attribute__((unused)) void by_ways(int way)
{
    if (way > 1) {
        if (way & 1)
            by_ways(way / 2);
        else
            by_ways(way / 2);
        return;
    }
    int out = 7, in = 0;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == 7);
}

#endif
