/*
 * A thread that is cancelled, as far as it comes to a cancellation point: posting to itself is none. What it has posted is known
 * afterwards, and completed by another thread.
 * Rows: two messages.
 */
#include "check.h"

#include <pthread.h>

enum { BYTES = 8 };

static char out[BYTES], in[4][BYTES];
static MPI_Request requests[4];
static int posted;

static __attribute__((noinline)) void post(MPI_Comm comm, int tag)
{
    MPI_Irecv(in[posted], BYTES, MPI_BYTE, comm_rank(comm), tag, comm, &requests[posted]);
    posted++;
    MPI_Isend(out, BYTES, MPI_BYTE, comm_rank(comm), tag, comm, &requests[posted]);
    posted++;
}

static void *post_all(void *unused)
{
    pthread_cancel(pthread_self());
    post(MPI_COMM_WORLD, 1);
    post(MPI_COMM_WORLD, 2);
    pthread_testcancel();
    posted = -1;
    return unused;
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level == MPI_THREAD_MULTIPLE) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, post_all, NULL) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        printf("%d posted\n", posted);
        MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
