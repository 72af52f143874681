/*
 * MPI_THREAD_MULTIPLE: threads that post and end at once, while what they posted is pending. The main thread computes, waits for
 * it, and starts the next one, which may get the same stack and the same number.
 */
#include "traffic.h"

#include <pthread.h>

enum { STEPS = 200000, ROUNDS = 120 };

static void *post(void *round)
{
    begin_traffic(*(int *)round);
    CHECK(*(int *)round % 2 || arithmetic(STEPS) < 2.0);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE && comm_size(MPI_COMM_WORLD) == 2);
    for (int round = 0; round < rounds; round++) {
        CHECK(pthread_create(&thread, NULL, post, &round) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(arithmetic(STEPS) < 2.0);
        end_traffic();
    }
    if (traffic.rank == 0)
        puts("posted and gone");
    MPI_Finalize();
    return 0;
}
