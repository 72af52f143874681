/*
 * Under MPI_THREAD_MULTIPLE, requests that go from thread to thread: made by one, completed by another while it posts
 * more; a persistent one made by the first thread, started by a second one and waited for by a third; a message that one
 * thread matches and another receives; a receive cancelled by another thread.
 * Rows: as without threads; the thread that posted and the one that ended are others.
 */
#include "check.h"

#include <pthread.h>

enum { BYTES = 48, MESSAGES = 200, STREAM = 1, PERSISTENT = 2, MATCHED = 3, NEVER = 4 };

static int peer;
static MPI_Request queue[MESSAGES];
static char in[MESSAGES][BYTES], data[BYTES];
static int posted; /* requests in the queue; atomic */

static void *post(void *unused)
{
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Irecv(in[i], BYTES, MPI_BYTE, peer, STREAM, MPI_COMM_WORLD, &queue[i]);
        __atomic_store_n(&posted, i + 1, __ATOMIC_RELEASE);
    }
    return unused;
}

static void *complete(void *unused)
{
    for (int i = 0; i < MESSAGES; i++) {
        while (__atomic_load_n(&posted, __ATOMIC_ACQUIRE) <= i)
            ;
        MPI_Wait(&queue[i], MPI_STATUS_IGNORE);
        CHECK(holds(in[i], BYTES, i));
    }
    return unused;
}

static void run(void *(*work)(void *), void *context)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, context) == 0);
    pthread_join(thread, NULL);
}

static void stream(void)
{
    pthread_t threads[2];
    char out[BYTES];
    CHECK(pthread_create(&threads[0], NULL, post, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, complete, NULL) == 0);
    for (int i = 0; i < MESSAGES; i++) {
        fill(out, BYTES, i);
        MPI_Send(out, BYTES, MPI_BYTE, peer, STREAM, MPI_COMM_WORLD);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void *start_it(void *request)
{
    MPI_Start(request);
    return NULL;
}

static void *wait_for_it(void *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return NULL;
}

static void *match(void *message)
{
    MPI_Mprobe(peer, MATCHED, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE);
    return NULL;
}

static void *cancel(void *request)
{
    MPI_Cancel(request);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    char out[BYTES];
    MPI_Request request;
    MPI_Message message;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    peer = 1 - comm_rank(MPI_COMM_WORLD);
    stream();

    MPI_Recv_init(data, BYTES, MPI_BYTE, peer, PERSISTENT, MPI_COMM_WORLD, &request);
    run(start_it, &request);
    fill(out, BYTES, PERSISTENT);
    MPI_Send(out, BYTES, MPI_BYTE, peer, PERSISTENT, MPI_COMM_WORLD);
    run(wait_for_it, &request);
    CHECK(holds(data, BYTES, PERSISTENT));
    MPI_Request_free(&request);

    fill(out, BYTES, MATCHED);
    MPI_Send(out, BYTES, MPI_BYTE, peer, MATCHED, MPI_COMM_WORLD);
    run(match, &message);
    MPI_Mrecv(data, BYTES, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(holds(data, BYTES, MATCHED));

    MPI_Irecv(data, BYTES, MPI_BYTE, peer, NEVER, MPI_COMM_WORLD, &request);
    run(cancel, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (peer == 1)
        puts("streamed, started, matched, cancelled");
    MPI_Finalize();
    return 0;
}
