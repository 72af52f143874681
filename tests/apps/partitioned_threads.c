/*
 * Under MPI_THREAD_MULTIPLE one thread waits for a partitioned send while another makes its partitions ready.
 * Rows: the calls that make partitions ready have their bytes, though the request is being waited for.
 */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { PARTITIONS = 4, COUNT = 10, ALL = PARTITIONS * COUNT, ROUNDS = 3, TAG = 8, LATE = 50000 /* us */ };

static int data[ALL];

static void *make_ready(void *request)
{
    usleep(LATE);
    MPI_Pready(0, *(MPI_Request *)request);
    MPI_Pready_range(1, PARTITIONS - 1, *(MPI_Request *)request);
    return NULL;
}

static void send_rounds(void)
{
    MPI_Request request;
    MPI_Psend_init(data, PARTITIONS, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request copy = request; /* MPI_Wait may write to its own */
        pthread_t thread;
        fill(data, sizeof data, round);
        MPI_Start(&request);
        CHECK(pthread_create(&thread, NULL, make_ready, &copy) == 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
    }
    MPI_Request_free(&request);
}

static void receive_rounds(void)
{
    MPI_Request request;
    MPI_Precv_init(data, PARTITIONS, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(holds(data, sizeof data, round));
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    CHECK(given == MPI_THREAD_MULTIPLE && comm_size(MPI_COMM_WORLD) == 2);
    if (comm_rank(MPI_COMM_WORLD) == 0) {
        send_rounds();
        printf("%d partitions, %d times\n", PARTITIONS, ROUNDS);
    } else {
        receive_rounds();
    }
    MPI_Finalize();
    return 0;
}
