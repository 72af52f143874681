/*
 * A thread that is cancelled, as far as it comes to a cancellation point: posting to itself is none. What it has posted is known
 * afterwards, and completed by another thread. Then the first thread is to be cancelled, from which the recorder looks around now
 * and then, and posts as well.
 * Rows: three messages.
 */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { BYTES = 8, MESSAGES = 3, PAUSE = 30000 /* us: longer than from one look around to the next */ };

static char out[BYTES], in[2 * MESSAGES][BYTES];
static MPI_Request requests[2 * MESSAGES];
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
        usleep(PAUSE);
        pthread_cancel(pthread_self());
        post(MPI_COMM_WORLD, 3);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        printf("%d posted\n", posted);
        MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
