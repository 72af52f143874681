/*
 * Messages that are not easy to match on three ranks: received from any source with any tag, in an order that the tags say;
 * between the two sides of an inter-communicator; by two threads a rank with tags of their own; on two communicators of the
 * same members with the same tags; cancelled receives and MPI_PROC_NULL between them, which are no messages.
 *
 *   overlap_match [ROUNDS]
 *
 * Prints how many messages there were: all of them matched, none left over.
 */
#include "work.h"

#include <pthread.h>

enum { RANKS = 3, BYTES = 40, LARGE = 100000, THREADS = 2 };
enum { ANY = 10, BETWEEN = 20, THREAD = 30, SAME = 40, NEVER = 50 };

static int rank, rounds;
static int64_t messages; /* received here; each thread adds to it when it is done */
static pthread_mutex_t messages_lock = PTHREAD_MUTEX_INITIALIZER;

static void count(int64_t more)
{
    pthread_mutex_lock(&messages_lock);
    messages += more;
    pthread_mutex_unlock(&messages_lock);
}

static void send_bytes(int bytes, int value, int to, int tag, MPI_Comm comm)
{
    static char out[LARGE]; /* one thread alone sends large ones */
    char small[BYTES];
    char *data = bytes > BYTES ? out : small;
    MPI_Request request;
    memset(data, value_of(value), (size_t)bytes);
    MPI_Isend(data, bytes, MPI_BYTE, to, tag, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Rank 0 takes what comes from the others, small and large, and learns from the status what it was. */
static void receive_from_any(void)
{
    static char in[LARGE];
    if (rank > 0) {
        for (int i = 0; i < rounds; i++)
            send_bytes((i + rank) % 3 ? BYTES : LARGE, i, 0, ANY + i % 2, MPI_COMM_WORLD);
        return;
    }
    int seen[RANKS] = {0};
    for (int i = 0; i < rounds * (RANKS - 1); i++) {
        MPI_Request request;
        MPI_Status status;
        MPI_Irecv(in, LARGE, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        int number = seen[status.MPI_SOURCE]++;
        CHECK(status.MPI_TAG == ANY + number % 2);
        CHECK(is_message(in, (size_t)count_bytes(&status), number));
    }
    count(rounds * (RANKS - 1));
}

static void receive_bytes(int value, int from, int tag, MPI_Comm comm)
{
    char in[BYTES];
    MPI_Request request;
    MPI_Irecv(in, BYTES, MPI_BYTE, from, tag, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(is_message(in, BYTES, value));
    count(1);
}

/* Rank 0 on one side, the others on the other: rank 0 of each group is another process. */
static void cross_over(void)
{
    MPI_Comm side, between;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0, 0, &between);
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            send_bytes(BYTES, i, i % 2, BETWEEN, between);
            receive_bytes(i + 1, i % 2, BETWEEN, between);
        } else if (rank - 1 == i % 2) {
            receive_bytes(i, 0, BETWEEN, between);
            send_bytes(BYTES, i + 1, 0, BETWEEN, between);
        }
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&side);
}

/* To the same thread of the next rank. */
static void *pass_on(void *number)
{
    int tag = THREAD + *(int *)number, next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS;
    for (int i = 0; i < rounds; i++) {
        char in[BYTES];
        MPI_Request request;
        MPI_Irecv(in, BYTES, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &request);
        send_bytes(BYTES, i, next, tag, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(is_message(in, BYTES, i));
    }
    count(rounds);
    return NULL;
}

static void pass_on_by_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, pass_on, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Two communicators with the same members; what is sent first on one is received first on the other. */
static void use_twins(void)
{
    MPI_Comm twins[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &twins[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &twins[1]);
    for (int i = 0; i < rounds; i++) {
        if (rank == 1)
            for (int t = 0; t < 2; t++)
                send_bytes(BYTES, 2 * i + t, 2, SAME, twins[t]);
        if (rank == 2)
            for (int t = 1; t >= 0; t--)
                receive_bytes(2 * i + t, 1, SAME, twins[t]);
    }
    MPI_Comm_free(&twins[1]);
    MPI_Comm_free(&twins[0]);
}

static void send_nothing(void)
{
    char in[BYTES];
    for (int i = 0; i < rounds; i++) {
        MPI_Request request;
        MPI_Irecv(in, BYTES, MPI_BYTE, (rank + 1) % RANKS, NEVER, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Irecv(in, BYTES, MPI_BYTE, MPI_PROC_NULL, NEVER, MPI_COMM_WORLD, &request);
        send_bytes(BYTES, i, MPI_PROC_NULL, NEVER, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE && comm_size(MPI_COMM_WORLD) == RANKS);
    rank = comm_rank(MPI_COMM_WORLD);
    rounds = argc > 1 ? atoi(argv[1]) : 50;
    receive_from_any();
    MPI_Barrier(MPI_COMM_WORLD); /* nothing of what follows may reach a receive from any source */
    cross_over();
    pass_on_by_threads();
    use_twins();
    send_nothing();
    int64_t all = 0;
    MPI_Reduce(&messages, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_values("messages", &all, 1);
    MPI_Finalize();
    return 0;
}
