/*
 * What hanging and slow programs share. Each program is a function, chosen by the first argument: `messages wrong_tag`. Ranks
 * first talk as they should, for a hang is seldom the first thing. Then each says `here RANK` on standard error, just before
 * what hangs or takes its time: the test looks at it from then on.
 *
 * A slow program takes some seconds, the second argument, and must end; rank 0 then prints its name.
 */
#ifndef HANG_H
#define HANG_H

#include "../work.h"

#include <signal.h>
#include <unistd.h>

enum { TAG = 7, OTHER_TAG = 17, LARGE = 1 << 22 };

struct program {
    const char *name;
    void (*run)(void);
};

#define PROGRAM(name) {#name, name}

static int rank, size;
static double seconds = 2.5;
/* No message of these programs is larger. */
static char to_others[LARGE], from_others[LARGE];

static inline void here(void)
{
    char line[32];
    int length = snprintf(line, sizeof line, "here %d\n", rank);
    /* in one piece: lines of several ranks must not be mixed */
    CHECK(write(STDERR_FILENO, line, (size_t)length) == length);
}

static inline int next(void)
{
    return (rank + 1) % size;
}

static inline int previous(void)
{
    return (rank + size - 1) % size;
}

/* Messages of 64 bytes are eager everywhere. */
enum { SMALL = 64 };

static inline void send_small(int to, int tag, MPI_Comm comm)
{
    MPI_Send(to_others, SMALL, MPI_BYTE, to, tag, comm);
}

static inline void receive_small(int from, int tag, MPI_Comm comm)
{
    MPI_Recv(from_others, SMALL, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE);
}

/* Two groups of two, of four ranks: between ranks 0 and 1 on one side, 2 and 3 on the other. */
SITE __attribute__((unused)) MPI_Comm between_sides(void)
{
    MPI_Comm side, between;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, OTHER_TAG, &between);
    return between;
}

/* Rounds of a ring and a reduction. */
SITE void good_rounds(int count)
{
    for (int round = 0; round < count; round++) {
        int sum, one = 1;
        MPI_Sendrecv(to_others, SMALL, MPI_BYTE, next(), TAG, from_others, SMALL, MPI_BYTE, previous(), TAG, MPI_COMM_WORLD,
            MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size);
    }
}

/* On a processor for this long, outside of MPI. */
SITE __attribute__((unused)) void computes(double this_long)
{
    static volatile double x = 0.3;
    for (int64_t end = now_ns() + (int64_t)(this_long * 1e9); now_ns() < end;)
        x = 3.7 * x * (1.0 - x);
}

SITE __attribute__((unused)) void sleeps(double this_long)
{
    struct timespec t = {.tv_sec = (time_t)this_long, .tv_nsec = (long)((this_long - (double)(time_t)this_long) * 1e9)};
    nanosleep(&t, NULL);
}

/* Looks for a message of this rank until it is there, with a pause after each look. */
SITE __attribute__((unused)) void looks_for(int from, int tag, double pause)
{
    for (int flag = 0; !flag;) {
        MPI_Iprobe(from, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        sleeps(pause);
    }
}

static inline int run_program(int argc, char **argv, int level, const struct program *programs, size_t count)
{
    int provided;
    MPI_Init_thread(&argc, &argv, level, &provided);
    CHECK(provided >= level && argc > 1);
    rank = comm_rank(MPI_COMM_WORLD);
    size = comm_size(MPI_COMM_WORLD);
    if (argc > 2)
        seconds = atof(argv[2]);
    const struct program *chosen = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            chosen = &programs[i];
    CHECK(chosen);
    good_rounds(3);
    chosen->run();
    if (rank == 0) {
        puts(chosen->name);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

#define RUN_PROGRAM(argc, argv, level, programs) \
    run_program(argc, argv, level, programs, sizeof(programs) / sizeof(programs)[0])

#endif
