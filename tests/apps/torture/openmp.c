/*
 * OpenMP under MPI_THREAD_FUNNELED: all threads compute while messages are pending that the main thread posts and waits for. On
 * the others no signal is ever handled, and nothing that blocks is interrupted.
 */
#include "watch.h"

#include <errno.h>
#include <omp.h>
#include <poll.h>
#include <time.h>

enum { THREADS = 3, STEPS = 100000, NUMBERS = 20000, ROUNDS = 60 };

static void block_for_a_moment(void)
{
    struct timespec moment = {.tv_nsec = 20000};
    CHECK(nanosleep(&moment, NULL) == 0);
    CHECK(poll(NULL, 0, 1) == 0);
}

static void compute_together(void)
{
    int disturbed = 0;
#pragma omp parallel reduction(+ : disturbed)
    {
        if (omp_get_thread_num() == 0) {
            arithmetic(2 * STEPS);
        } else {
            disturbed += is_disturbed(STEPS, 0, 0, 0);
            block_for_a_moment();
            disturbed += is_disturbed(STEPS, 0, 0, 0);
        }
    }
    CHECK(disturbed == 0);
}

/* Loops in chunks, a critical section, tasks and memory of every thread's own. */
static void share_out(void)
{
    long sum = 0, critical = 0, tasks = 0;
#pragma omp parallel for schedule(dynamic, 100) reduction(+ : sum)
    for (int i = 0; i < NUMBERS; i++) {
        int *copy = malloc(sizeof *copy);
        *copy = i;
        sum += *copy;
        free(copy);
        if (i % 100 == 0)
#pragma omp critical
            critical++;
    }
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 100; i++)
#pragma omp task
#pragma omp atomic
        tasks += 1 + (arithmetic(1000) > 2.0);
    CHECK(sum == (long)NUMBERS * (NUMBERS - 1) / 2 && critical == NUMBERS / 100 && tasks == 100);
}

static void work(int round)
{
    (void)round;
    compute_together();
    share_out();
}

int main(int argc, char **argv)
{
    start_funneled(&argc, &argv);
    omp_set_num_threads(THREADS);
    under_traffic(argc, argv, ROUNDS, work);
    if (traffic.rank == 0)
        puts("computed together, undisturbed");
    MPI_Finalize();
    return 0;
}
