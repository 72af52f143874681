/*
 * MPI_THREAD_MULTIPLE: what one thread posts another one waits for, while the first computes, and the other way round. No signal
 * is handled on a thread that has posted nothing yet and computes.
 */
#include "watch.h"

#include <pthread.h>

enum { STEPS = 500000, ROUNDS = 120 };

static pthread_barrier_t barrier;
static int rounds;

/* Each of the two does the same; in even rounds thread 0 posts and thread 1 waits. */
static void take_part(int self)
{
    for (int round = 0; round < rounds; round++) {
        int posts = round % 2 == self;
        if (posts)
            begin_traffic(round);
        else
            CHECK(arithmetic(STEPS / 2) < 2.0);
        pthread_barrier_wait(&barrier);
        CHECK(arithmetic(STEPS / 2) < 2.0);
        if (posts)
            CHECK(arithmetic(STEPS) < 2.0);
        else
            end_traffic();
        pthread_barrier_wait(&barrier);
    }
}

static void *other_thread(void *disturbed)
{
    *(int *)disturbed = is_disturbed(STEPS, 0, 0, 0);
    pthread_barrier_wait(&barrier);
    take_part(1);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, disturbed = 1;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE && comm_size(MPI_COMM_WORLD) == 2);
    check_watch();
    rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    begin_traffic(0);
    CHECK(pthread_create(&thread, NULL, other_thread, &disturbed) == 0);
    CHECK(arithmetic(STEPS) < 2.0);
    end_traffic();
    pthread_barrier_wait(&barrier);
    take_part(0);
    CHECK(pthread_join(thread, NULL) == 0 && disturbed == 0);
    if (traffic.rank == 0)
        puts("handed over");
    MPI_Finalize();
    return 0;
}
