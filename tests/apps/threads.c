/*
 * Under MPI_THREAD_MULTIPLE: four threads exchange messages at once, each with a tag of its own; then a second thread
 * posts requests that the first one completes.
 * Rows: 25 sends and 25 receives for each thread's tag, all ended by MPI_Waitall; ten receives posted by another thread
 * than the one that waited for them.
 */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 25, BYTES = 36, HANDED_OVER = 10, HANDED_TAG = 100 };

static int peer;

static void *exchange(void *context)
{
    int tag = *(int *)context;
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, BYTES, tag + round);
        MPI_Irecv(in, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, tag + round));
    }
    return NULL;
}

static char handed_data[HANDED_OVER][BYTES];
static MPI_Request handed[HANDED_OVER];

static void *post_all(void *unused)
{
    for (int i = 0; i < HANDED_OVER; i++)
        MPI_Irecv(handed_data[i], BYTES, MPI_BYTE, peer, HANDED_TAG, MPI_COMM_WORLD, &handed[i]);
    return unused;
}

int main(int argc, char **argv)
{
    int provided, rank, tags[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    rank = comm_rank(MPI_COMM_WORLD);
    peer = 1 - rank;
    for (int i = 0; i < THREADS; i++) {
        tags[i] = i + 1;
        CHECK(pthread_create(&threads[i], NULL, exchange, &tags[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    CHECK(pthread_create(&threads[0], NULL, post_all, NULL) == 0);
    pthread_join(threads[0], NULL);
    char data[BYTES];
    fill(data, BYTES, HANDED_TAG);
    for (int i = 0; i < HANDED_OVER; i++)
        MPI_Send(data, BYTES, MPI_BYTE, peer, HANDED_TAG, MPI_COMM_WORLD);
    for (int i = 0; i < HANDED_OVER; i++) {
        MPI_Wait(&handed[i], MPI_STATUS_IGNORE);
        CHECK(holds(handed_data[i], BYTES, HANDED_TAG));
    }
    if (rank == 0)
        puts("four at once, ten handed over");
    MPI_Finalize();
    return 0;
}
