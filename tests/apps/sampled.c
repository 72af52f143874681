/*
 * sampled SECONDS THREADS: what LAPSCOPE_SAMPLE has to find. Rank 0 computes in three functions while a receive is under way, for
 * parts of the time that it measures itself, by the clock of its own running time; rank 1 sleeps meanwhile. So many threads of
 * OpenMP compute beside it on rank 0, and make no MPI call, though with them it is MPI_THREAD_MULTIPLE. Between the windows a
 * fourth function computes. Prints for rank 0:
 *
 *     FUNCTION SHARE        of what it computed in windows
 *     outside SHARE         of all that it computed, in the fourth function
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_MS = 20, PARTS = 4 };

static volatile int is_over;
static volatile double kept;

/* Each is a loop of its own: what differs keeps compilers from making one of them. */
#define LOOP(name, step)                                          \
    static __attribute__((noinline)) void name(long rounds)      \
    {                                                            \
        double value = kept;                                     \
        for (long i = 0; i < rounds; i++)                        \
            value = value * 0.999 + (step);                      \
        kept = value;                                            \
    }

LOOP(first, 1.5)
LOOP(second, 2.5)
LOOP(third, 3.5)
LOOP(fourth, 4.5)

static void (*const loops[PARTS])(long) = {first, second, third, fourth};
static const char *const names[PARTS] = {"first", "second", "third", "outside"};
static const int percent[PARTS] = {50, 30, 20, 25}; /* of a round; the last one comes behind it */

static double running_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void compute_beside(void)
{
    while (!is_over)
        first(1000);
}

/* Rounds of a loop in a millisecond. */
static long calibrate(void)
{
    long rounds = 100000;
    double begin = running_time();
    first(rounds);
    return (long)((double)rounds / ((running_time() - begin) * 1e3)) + 1;
}

static void compute(double seconds)
{
    double spent[PARTS] = {0}, all = 0;
    long a_millisecond = calibrate();
    int more = 1, datum;
    while (more) {
        MPI_Request request;
        MPI_Irecv(&datum, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
        for (int part = 0; part < PARTS; part++) {
            if (part == PARTS - 1) {
                more = all < seconds;
                MPI_Send(&more, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            double begin = running_time();
            loops[part](a_millisecond * ROUND_MS * percent[part] / 100);
            spent[part] += running_time() - begin;
            all += running_time() - begin;
        }
    }
    for (int part = 0; part < PARTS; part++)
        printf("%s %.4f\n", names[part], spent[part] / (part < PARTS - 1 ? all - spent[PARTS - 1] : all));
}

static void sleep_meanwhile(void)
{
    int more = 1, datum = 1;
    while (more) {
        MPI_Request request;
        MPI_Irecv(&more, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &request);
        usleep(ROUND_MS * 1000);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&datum, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    int rank, provided, count = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init_thread(&argc, &argv, count == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0)
        sleep_meanwhile();
    else if (count == 0)
        compute(seconds);
    else
#pragma omp parallel num_threads(count + 1)
    {
        if (omp_get_thread_num() > 0)
            compute_beside();
        else {
            compute(seconds);
            is_over = 1;
        }
    }
    MPI_Finalize();
    return 0;
}
