/*
 * A thread for each task, one behind the other: each posts, computes, waits and ends. It prints how many descriptors more are open
 * behind most of them than behind the first few, and whether memory has grown by no more than 8 MB.
 */
#include "work.h"

#include <fcntl.h>
#include <pthread.h>

enum { BYTES = 200000, FIRST = 20, TASKS = 120, MOST_NUMBERS = 4096 };

static char from[BYTES], into[BYTES];

static void *task(void *number)
{
    MPI_Request requests[2];
    memset(from, value_of((int)(intptr_t)number), sizeof from);
    MPI_Irecv(into, BYTES, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(from, BYTES, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[1]);
    do_rounds(2000000);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(is_message(into, BYTES, (int)(intptr_t)number));
    return NULL;
}

static void run_tasks(int begin, int end)
{
    for (int i = begin; i < end; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, task, (void *)(intptr_t)i) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static int open_descriptors(void)
{
    int count = 0;
    for (int i = 0; i < MOST_NUMBERS; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    run_tasks(0, FIRST);
    int descriptors = open_descriptors();
    long before = resident_kb();
    run_tasks(FIRST, TASKS);
    printf("%d descriptors more, memory %s\n", open_descriptors() - descriptors, resident_kb() - before < 8 << 10 ? "bounded" : "grown");
    MPI_Finalize();
    return 0;
}
