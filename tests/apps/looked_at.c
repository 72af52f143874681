/*
 * looked_at SECONDS: threads that sleep in system calls of which some do not begin again when a signal or a tracer ends them,
 * beside ranks that compute. Rank 0 prints what they computed, and how many calls were interrupted: none, whoever looks.
 */
#include "check.h"

#include <mpi.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>

static int interrupted, ends[2];
static sem_t never_posted;

static void note(int result)
{
    if (result < 0 && errno == EINTR)
        __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
}

static void *waits_for_events(void *unused)
{
    struct epoll_event event;
    int set = epoll_create1(0);
    note(epoll_wait(set, &event, 1, -1));
    return unused;
}

static void *polls(void *unused)
{
    struct pollfd none = {.fd = ends[0], .events = POLLIN};
    note(poll(&none, 1, -1));
    return unused;
}

static void *reads(void *unused)
{
    char byte;
    note((int)read(ends[0], &byte, 1));
    return unused;
}

static void *waits_for_post(void *unused)
{
    note(sem_wait(&never_posted));
    return unused;
}

static double compute(double seconds)
{
    double sum = 0, end = MPI_Wtime() + seconds;
    for (long round = 0; round < 1000 || MPI_Wtime() < end; round++) {
        double part = 0;
        for (int i = 0; i < 10000; i++)
            part = part * 0.5 + i;
        sum = part;
    }
    return sum;
}

int main(int argc, char **argv)
{
    static void *(*const sleepers[])(void *) = {waits_for_events, polls, reads, waits_for_post};
    pthread_t thread;
    int rank, all;
    double own, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(pipe(ends) == 0 && sem_init(&never_posted, 0, 0) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread, NULL, sleepers[i], NULL) == 0);
    if (rank == 0)
        fprintf(stderr, "here 0\n");
    own = compute(argc > 1 ? atof(argv[1]) : 1);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(&interrupted, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.17g, %d interrupted\n", sum, all);
    MPI_Finalize();
    return 0;
}
