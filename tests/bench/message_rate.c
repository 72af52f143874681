/*
 * What a message costs with and without lapscope: batches of windows through MPI_* (which the preload library sees) and
 * through PMPI_* (which nothing sees) in turn within one process, so that both meet the same noise.
 *
 *   message_rate MESSAGE_BYTES WINDOW BATCHES        on two ranks
 *   message_rate MESSAGE_BYTES WINDOW WINDOWS seen   on one rank
 *
 * On two ranks a window is WINDOW non-blocking sends or receives and one MPI_Waitall, then a word back. Rank 0 prints the time
 * of a window divided by WINDOW, in nanoseconds: the median over the batches (in brackets the quartiles) of the median over a
 * batch's windows; and the same of what was added from a bare batch to its neighbour. A message's time stamps are two readings of
 * the recorder's clock, which no code can make cheaper: what was added less these stands beside it.
 *
 * On one rank, with messages to itself, half of a window's requests are receives; all goes through MPI_*, and nothing is
 * timed: for tools that count instructions.
 */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_MESSAGES = 6400, BATCH_BYTES = 32 << 20 };

struct calls {
    int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*waitall)(int, MPI_Request *, MPI_Status *);
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    int (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
};

static const struct calls seen = {MPI_Isend, MPI_Irecv, MPI_Waitall, MPI_Send, MPI_Recv};
static const struct calls unseen = {PMPI_Isend, PMPI_Irecv, PMPI_Waitall, PMPI_Send, PMPI_Recv};

static int bytes, window, windows;
static char *out, *in;
static MPI_Request *requests;

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static void print_quartiles(const char *what, double *values, int count)
{
    double middle = median(values, count);
    printf("  %s %.0f (%.0f .. %.0f)", what, middle, values[count / 4], values[3 * count / 4]);
}

static void receive(const struct calls *mpi, int from, MPI_Request *posted, int count)
{
    for (int i = 0; i < count; i++)
        mpi->irecv(in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, &posted[i]);
}

static void send(const struct calls *mpi, int to, MPI_Request *posted, int count)
{
    for (int i = 0; i < count; i++)
        mpi->isend(out, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD, &posted[i]);
}

/* The median over the windows of a batch, per message. */
static double batch(const struct calls *mpi, int rank)
{
    static double times[BATCH_MESSAGES];
    int word = 0;
    for (int i = 0; i < windows; i++) {
        double begin = nanoseconds();
        if (rank == 0)
            send(mpi, 1, requests, window);
        else
            receive(mpi, 0, requests, window);
        mpi->waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            mpi->recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            mpi->send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        times[i] = (nanoseconds() - begin) / window;
    }
    return median(times, windows);
}

/* As clock_now of the recorder where the processor's counter is invariant. */
static uint64_t now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return (uint64_t)nanoseconds();
#endif
}

/* A reading of that clock: the median of many times a hundred. */
static double clock_reading(void)
{
    enum { TURNS = 1001, READINGS = 100 };
    static double times[TURNS];
    static volatile uint64_t seen_last;
    for (int turn = 0; turn < TURNS; turn++) {
        double begin = nanoseconds();
        for (int i = 0; i < READINGS; i++)
            seen_last = now();
        times[turn] = (nanoseconds() - begin) / READINGS;
    }
    return median(times, TURNS);
}

static void measure(int rank, int batches)
{
    double *bare = malloc(3 * (size_t)batches * sizeof *bare), *with = bare + batches, *added = with + batches;
    batch(&unseen, rank);
    batch(&seen, rank); /* warm */
    for (int i = 0; i < batches; i++) {
        if (i % 2) /* neither always goes first */
            with[i] = batch(&seen, rank);
        bare[i] = batch(&unseen, rank);
        if (i % 2 == 0)
            with[i] = batch(&seen, rank);
        added[i] = with[i] - bare[i];
    }
    if (rank == 0) {
        printf("%6d bytes, %4d in flight:", bytes, window);
        print_quartiles("bare", bare, batches);
        print_quartiles("with", with, batches);
        print_quartiles("added", added, batches);
        double clock = clock_reading();
        printf(" ns, less two readings of the clock (%.1f each) %.0f\n", clock, median(added, batches) - 2 * clock);
    }
    free(bare);
}

static void to_itself(int count)
{
    for (int i = 0; i < count; i++) {
        receive(&seen, 0, requests, window / 2);
        send(&seen, 0, requests + window / 2, window / 2);
        seen.waitall(window / 2 * 2, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank, size, is_counted = argc == 5 && !strcmp(argv[4], "seen");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((argc != 4 && !is_counted) || size != (is_counted ? 1 : 2)) {
        fprintf(stderr, "usage: message_rate BYTES WINDOW BATCHES on 2 ranks, message_rate BYTES WINDOW WINDOWS seen on 1\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bytes = atoi(argv[1]);
    window = atoi(argv[2]);
    size_t all = (size_t)bytes * (size_t)window;
    windows = BATCH_MESSAGES / window;
    if ((size_t)windows * all > BATCH_BYTES)
        windows = (int)(BATCH_BYTES / all);
    windows = windows > 0 ? windows : 1;
    out = calloc((size_t)bytes, 1);
    in = calloc(all, 1);
    requests = malloc((size_t)window * sizeof *requests);
    if (is_counted)
        to_itself(atoi(argv[3]));
    else
        measure(rank, atoi(argv[3]));
    MPI_Finalize();
    return 0;
}
