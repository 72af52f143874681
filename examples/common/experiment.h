/*
 * What the experiments share that are MPI programs: ranks, the calibration of their work, checked messages, options that all of
 * them refuse alike. What needs no MPI is in measure.h.
 */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#include <mpi.h>
#include <unistd.h>

#include "measure.h"

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

/* --- options ------------------------------------------------------------------------------------------------------ */

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

/* Gives up over words behind the options, which nobody would read. */
static inline void refuse_words(const char *program, int argc)
{
    if (optind < argc)
        give_up(program, "only options are understood; -h lists them");
}

/* Help, on one rank. */
static inline void print_help(const char *text)
{
    if (rank_in(MPI_COMM_WORLD) == 0)
        fputs(text, stdout);
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
