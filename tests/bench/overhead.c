/*
 * What lapscope adds to a request, that is to its post and its share of the call that completes it, measured within one
 * process: batches through MPI_* (which the preload library sees) and batches through PMPI_* (which nothing sees) in turn, so
 * that both meet the same noise.
 *
 *   overhead MESSAGE_BYTES IN_FLIGHT ROUNDS [THREADS]
 *
 * A batch posts IN_FLIGHT receives and sends to itself and waits for all in one MPI_Waitall, again and again for 20000
 * messages. One rank prints the median over the rounds of the CPU time added per request, with the first and third
 * quartile, in nanoseconds. With two and more threads, under MPI_THREAD_MULTIPLE, each does that for itself at the same
 * time, on a communicator of its own.
 */
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 20000 };

/* Of the thread's own: others may want the processors, too. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct exchange {
    char *send, *receive;
    MPI_Request *requests;
    int bytes, in_flight;
    MPI_Comm comm;
};

static double seen(const struct exchange *x)
{
    double begin = seconds();
    for (int done = 0; done < MESSAGES; done += x->in_flight) {
        for (int i = 0; i < x->in_flight; i++)
            MPI_Irecv(x->receive + (size_t)i * (size_t)x->bytes, x->bytes, MPI_BYTE, 0, 0, x->comm,
                      &x->requests[2 * i]);
        for (int i = 0; i < x->in_flight; i++)
            MPI_Isend(x->send, x->bytes, MPI_BYTE, 0, 0, x->comm, &x->requests[2 * i + 1]);
        MPI_Waitall(2 * x->in_flight, x->requests, MPI_STATUSES_IGNORE);
    }
    return seconds() - begin;
}

static double unseen(const struct exchange *x)
{
    double begin = seconds();
    for (int done = 0; done < MESSAGES; done += x->in_flight) {
        for (int i = 0; i < x->in_flight; i++)
            PMPI_Irecv(x->receive + (size_t)i * (size_t)x->bytes, x->bytes, MPI_BYTE, 0, 0, x->comm,
                       &x->requests[2 * i]);
        for (int i = 0; i < x->in_flight; i++)
            PMPI_Isend(x->send, x->bytes, MPI_BYTE, 0, 0, x->comm, &x->requests[2 * i + 1]);
        PMPI_Waitall(2 * x->in_flight, x->requests, MPI_STATUSES_IGNORE);
    }
    return seconds() - begin;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_quartiles(const char *what, double *values, int count, const char *unit)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    printf("  %-44s %8.1f %s   (quartiles %.1f .. %.1f)\n", what, values[count / 2], unit, values[count / 4],
           values[3 * count / 4]);
}

static pthread_barrier_t together;
static int rounds;

static void prepare(struct exchange *x)
{
    x->send = calloc((size_t)x->bytes, 1);
    x->receive = calloc((size_t)x->bytes * (size_t)x->in_flight, 1);
    x->requests = malloc(2 * (size_t)x->in_flight * sizeof *x->requests);
}

/* The rounds of one thread; fills bare and added. */
static void measure(const struct exchange *x, double *bare, double *added)
{
    double posted = 2.0 * MESSAGES;
    unseen(x);
    seen(x); /* warm */
    for (int round = 0; round < rounds; round++) {
        double without = 0, with = 0;
        for (int half = 0; half < 2; half++) { /* neither always goes first */
            pthread_barrier_wait(&together);
            if (round % 2 == half)
                without = unseen(x);
            else
                with = seen(x);
        }
        bare[round] = without / posted * 1e9;
        added[round] = (with - without) / posted * 1e9;
    }
}

static void *other_thread(void *x)
{
    double *ignored = malloc(2 * (size_t)rounds * sizeof *ignored);
    measure(x, ignored, ignored + rounds);
    free(ignored);
    return NULL;
}

int main(int argc, char **argv)
{
    int size, level, threads = argc > 4 ? atoi(argv[4]) : 1;
    if (threads > 1)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4 || size > 1 || threads < 1 || threads > 16) {
        fprintf(stderr, "usage: overhead MESSAGE_BYTES IN_FLIGHT ROUNDS [THREADS], on one rank\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rounds = atoi(argv[3]);
    struct exchange x[16];
    pthread_t others[16];
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        x[i] = (struct exchange){.bytes = atoi(argv[1]), .in_flight = atoi(argv[2])};
        prepare(&x[i]);
        MPI_Comm_dup(MPI_COMM_WORLD, &x[i].comm);
    }
    double *bare = malloc((size_t)rounds * sizeof *bare), *added = malloc((size_t)rounds * sizeof *added);
    for (int i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, other_thread, &x[i]);
    measure(&x[0], bare, added);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    print_quartiles("bare, per request", bare, rounds, "ns");
    print_quartiles("added by lapscope, per request", added, rounds, "ns");
    MPI_Finalize();
    return 0;
}
