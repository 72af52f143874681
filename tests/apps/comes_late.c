/*
 * Rank 1 comes late by so many milliseconds, asleep outside of MPI; rank 0 waits for it. With "threads" both of rank 0's threads
 * do, under MPI_THREAD_MULTIPLE where that is granted. Ends with code 3.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBERS = 100000 };

static int first[NUMBERS], second[NUMBERS];

static void *receive(void *numbers)
{
    MPI_Recv(numbers, NUMBERS, MPI_INT, 1, numbers == first ? 1 : 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void receive_both(int has_threads)
{
    pthread_t thread;
    if (has_threads && pthread_create(&thread, NULL, receive, second) == 0) {
        receive(first);
        pthread_join(thread, NULL);
        return;
    }
    MPI_Request requests[2];
    MPI_Irecv(first, NUMBERS, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(second, NUMBERS, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void come_late(int milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
    for (int i = 0; i < NUMBERS; i++)
        second[i] = 2 * (first[i] = i);
    MPI_Send(first, NUMBERS, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Send(second, NUMBERS, MPI_INT, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, level = MPI_THREAD_SINGLE, wants_threads = argc > 2 && !strcmp(argv[2], "threads");
    MPI_Init_thread(&argc, &argv, wants_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        long long sum = 0;
        receive_both(wants_threads && level == MPI_THREAD_MULTIPLE);
        for (int i = 0; i < NUMBERS; i++)
            sum += first[i] + second[i];
        printf("%lld\n", sum);
    } else if (rank == 1) {
        come_late(argc > 1 ? atoi(argv[1]) : 0);
    }
    MPI_Finalize();
    return 3;
}
