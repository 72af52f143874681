/*
 * What the experiments share: computation in fixed amounts, medians with spread, checked messages, and tables that people
 * and `lapscope bench` read alike (README.md beside this directory).
 *
 * Computation is a number of rounds, calibrated once at the start, never "until a deadline": a deadline hides the time that
 * others take from the processor, and flatters every result. How long it took is measured each time.
 */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_REPETITIONS 1001

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static inline int rank_in(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

static inline int size_of(MPI_Comm comm)
{
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

/* Says why on standard error, once, and ends the job with code 2. */
static inline void give_up(const char *program, const char *why)
{
    if (rank_in(MPI_COMM_WORLD) == 0)
        fprintf(stderr, "%s: %s\n", program, why);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* --- computation -------------------------------------------------------------------------------------------------- */

static double rounds_per_us;

/* Microseconds of a clock that the ranks of one machine share. */
static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline void do_rounds(int64_t rounds)
{
    static volatile double result;
    double x = 0.3;
    for (int64_t i = 0; i < rounds; i++)
        x = 3.7 * x * (1.0 - x);
    result = x;
    (void)result;
}

/* Finds how much work a microsecond is while all ranks compute; the best of several, as others may run meanwhile. */
static inline void calibrate_work(void)
{
    enum { ROUNDS = 400000, TRIALS = 9 };
    double best = 1e30;
    for (int trial = 0; trial < TRIALS; trial++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = now_us();
        do_rounds(ROUNDS);
        double took = now_us() - begin;
        best = took < best ? took : best;
    }
    MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD); /* the same work on all ranks */
    rounds_per_us = ROUNDS / best;
}

/* Computes what takes `us` on a processor of one's own; returns how long it took. */
static inline double compute(double us)
{
    double begin = now_us();
    do_rounds((int64_t)(us * rounds_per_us));
    return now_us() - begin;
}

/* --- spread ------------------------------------------------------------------------------------------------------- */

/* Median, first and third quartile. */
struct spread {
    double median, low, high;
};

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double quantile(const double *sorted, int count, double fraction)
{
    double place = fraction * (count - 1);
    int below = (int)place;
    double above = below + 1 < count ? sorted[below + 1] : sorted[below];
    return sorted[below] + (place - below) * (above - sorted[below]);
}

static inline struct spread spread_of(const double *values, int count)
{
    double sorted[MOST_REPETITIONS];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return (struct spread){quantile(sorted, count, 0.5), quantile(sorted, count, 0.25), quantile(sorted, count, 0.75)};
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Room for a message whose pages are there already. */
static inline char *make_buffer(size_t bytes)
{
    char *buffer = malloc(bytes + 1);
    if (!buffer) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    memset(buffer, 0, bytes + 1);
    return buffer;
}

/* A message is one value over and over, another one each time. */
static inline void fill_message(char *buffer, size_t bytes, int number)
{
    memset(buffer, number % 100 + 1, bytes);
}

/* Ends the job when the message is not the one that was sent. */
static inline void check_message(const char *buffer, size_t bytes, int number)
{
    if (bytes && (buffer[0] != (char)(number % 100 + 1) || memcmp(buffer, buffer + 1, bytes - 1) != 0)) {
        fprintf(stderr, "message %d of %zu bytes is not what was sent\n", number, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* --- pairs: one process sends, another receives -------------------------------------------------------------------- */

enum { SENDER, RECEIVER };                                  /* ranks */
enum { SIDE_SEND, SIDE_RECEIVE, SIDES };                    /* whose communication is non-blocking */
enum { NOBODY_FIRST, SENDER_FIRST, RECEIVER_FIRST, FIRSTS }; /* who posts first on purpose */

/* By how much the other one of two processes is first, where it is on purpose: enough for what it announces to arrive. */
#define LATE_US 500.0

static const char *const side_names[] = {"send", "receive"};
static const char *const first_names[] = {"none", "sender", "receiver"};

static inline int posts_late(int rank, int first)
{
    return (first == SENDER_FIRST && rank == RECEIVER) || (first == RECEIVER_FIRST && rank == SENDER);
}

/*
 * How long a link rests between messages. One that a token bucket limits (traffic shaping, clouds) lets a burst pass at full
 * speed when it was idle: a message after a long computation would find that, one after a short computation would not, and
 * the difference would look like overlap. So warm_ups() messages one after the other empty such a bucket, and after that
 * each message has the rest that it takes to fill it again by as much as one message takes out: all find the same.
 */
static inline int warm_ups(size_t bytes)
{
    enum { BUCKET_BYTES = 1 << 20, FEWEST = 4 };
    int count = (int)(BUCKET_BYTES / bytes);
    return count > FEWEST ? count : FEWEST;
}

/* `took_us` is what the warm-ups took all together; both ranks get the same. */
static inline double rest_us(double took_us, size_t bytes)
{
    MPI_Allreduce(MPI_IN_PLACE, &took_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 1.5 * took_us / warm_ups(bytes);
}

/* After a rest, both leave this at about the same time: a barrier lets one go a little before the other, and is over then. */
static inline void start_together(double rest)
{
    compute(rest);
    MPI_Barrier(MPI_COMM_WORLD);
    compute(20);
}

/* How far the other's clock is ahead of this one: 0 on one machine, else from the quickest of several questions. */
static inline double clock_ahead_us(void)
{
    enum { QUESTIONS = 40 };
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int together = size_of(machine) == size_of(MPI_COMM_WORLD), rank = rank_in(MPI_COMM_WORLD);
    MPI_Comm_free(&machine);
    double ahead = 0, quickest = 1e30;
    for (int i = 0; i < QUESTIONS && !together; i++) {
        double asked = now_us(), theirs = asked;
        if (rank == 0)
            MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            theirs = now_us();
            MPI_Send(&theirs, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            continue;
        }
        MPI_Recv(&theirs, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double answered = now_us();
        if (answered - asked < quickest) {
            quickest = answered - asked;
            ahead = theirs - (asked + answered) / 2;
        }
    }
    MPI_Bcast(&ahead, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return rank == 0 ? ahead : -ahead;
}

/* Tells the other process of a moment here; returns its moment, by the clock of this one. */
static inline double exchange_moment(double mine, double ahead_us)
{
    double theirs;
    int other = 1 - rank_in(MPI_COMM_WORLD);
    MPI_Sendrecv(&mine, 1, MPI_DOUBLE, other, 0, &theirs, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return theirs - ahead_us;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Reads "1024,65536" or "1K,64K,4M"; returns how many there are, 0 when the text is no such list or longer than `most`. */
static inline int read_sizes(const char *text, size_t *sizes, int most)
{
    int count = 0;
    for (const char *at = text; *at && count < most; count++) {
        char *end;
        double size = strtod(at, &end);
        if (end == at || size < 0)
            return 0;
        if (*end == 'K' || *end == 'M') {
            size *= *end == 'K' ? 1024 : 1048576;
            end++;
        }
        if (*end && *end != ',')
            return 0;
        if (*end == ',' && !end[1])
            return 0;
        sizes[count] = (size_t)size;
        at = *end ? end + 1 : end;
        if (!*at)
            return count + 1;
    }
    return 0;
}

/* Reads a whole number from `least` to `most`; returns whether the text is one. */
static inline int read_count(const char *text, int least, int most, int *count)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < least || number > most)
        return 0;
    *count = (int)number;
    return 1;
}

/* Returns which of the names it is, -1 when none. */
static inline int index_of_name(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* Gives up over a value that is none of what the option takes, or over an option that there is not. */
static inline void refuse_option(const char *program, int option, const char *value, const char *takes)
{
    char why[256];
    if (takes)
        snprintf(why, sizeof why, "-%c %.80s: it takes %s", option, value, takes);
    else
        snprintf(why, sizeof why, "no option -%c, or its value is missing; -h lists them", option);
    give_up(program, why);
}

static inline void need_two_ranks(const char *program)
{
    if (size_of(MPI_COMM_WORLD) != 2)
        give_up(program, "it measures two processes; start it with mpirun -n 2");
}

/* Help, on one rank. */
static inline void print_help(const char *text)
{
    if (rank_in(MPI_COMM_WORLD) == 0)
        fputs(text, stdout);
}

/* Sizes of messages that an int can count. */
static inline int sizes_fit(const size_t *sizes, int count)
{
    for (int i = 0; i < count; i++)
        if (sizes[i] < 1 || sizes[i] > 2147483647)
            return 0;
    return count > 0;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static int column_widths[40], column; /* of the table that is being printed; the one that comes next */

static inline void print_cell(const char *text)
{
    printf("  %*s", column_widths[column++], text);
}

/* Names of columns, separated by single blanks; "X*" is X with its quartiles. */
static inline void print_columns(const char *names)
{
    enum { LEAST_WIDTH = 8 };
    char name[48], full[64];
    int count = 0;
    for (int length; sscanf(names, "%47s%n", name, &length) == 1; names += length) {
        char *star = strchr(name, '*');
        static const char *const ends[] = {"", "_lo", "_hi"};
        if (star)
            *star = 0;
        for (int i = 0; i < (star ? 3 : 1); i++) {
            int width = snprintf(full, sizeof full, "%s%s", name, ends[i]);
            column = count;
            column_widths[count++] = width > LEAST_WIDTH ? width : LEAST_WIDTH;
            print_cell(full);
        }
    }
    printf("\n");
    column = 0;
}

static inline void print_count(size_t count)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", count);
    print_cell(text);
}

static inline void print_value(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", value);
    print_cell(text);
}

static inline void print_spread(struct spread of)
{
    print_value(of.median);
    print_value(of.low);
    print_value(of.high);
}

static inline void print_nothing(void)
{
    print_cell("-");
}

static inline void end_row(void)
{
    printf("\n");
    column = 0;
}

/* Ranks that poll take the processor from each other where there are more of them than processors; a comment says so. */
static inline void note_crowding(MPI_Comm comm)
{
    MPI_Comm node;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int ranks = size_of(node);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    MPI_Comm_free(&node);
    if (rank_in(comm) == 0 && ranks > processors)
        printf("# %d ranks on %ld processors: who waits takes the time of who computes\n", ranks, processors);
}

#endif
