/*
 * Exchanges between neighbours in a ring, of small messages that every MPI keeps: the first argument says how. The first ones go on only
 * because MPI keeps messages; the others are safe, or nothing that is recorded tells that they are not.
 */
#include "work.h"

#include <pthread.h>
#include <unistd.h>

enum { ITERATIONS = 10, BYTES = 512 };

static char out[BYTES], in[BYTES];
static int rank, size, left, right;
static MPI_Win window;

SITE void send_first(void)
{
    MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void wait_for_send_first(void)
{
    MPI_Request request;
    MPI_Isend(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The receive comes after a barrier that the sender makes after its send. */
SITE void barrier_between(void)
{
    if (rank == 0)
        MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The root sends before it enters the collective, and whom it sends to waits there for the root. */
SITE void root_sends_first(void)
{
    if (rank == 0)
        MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Bcast(in, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The root of the reduction receives behind it. */
SITE void root_receives_late(void)
{
    int sum, one = 1;
    if (rank == 0)
        MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void fence_between(void)
{
    if (rank == 0)
        MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    if (rank == 1)
        MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* No receive is open where all send, whatever they would take. */
SITE void any_after_send(void)
{
    MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Recv(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Which message the probe finds first depends on when they come, but nobody comes to it. */
SITE void probed(void)
{
    MPI_Status status;
    MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    MPI_Recv(in, BYTES, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void sendrecv(void)
{
    MPI_Sendrecv(out, BYTES, MPI_BYTE, right, 0, in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void receive_posted_first(void)
{
    MPI_Request request;
    MPI_Irecv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, &request);
    MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

SITE void all_together(void)
{
    MPI_Request requests[2];
    MPI_Isend(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

SITE void one_receives_first(void)
{
    if (rank == 0)
        MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    if (rank != 0)
        MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void buffered(void)
{
    MPI_Bsend(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Tests of its send are made until it is complete, and in between it receives what has come. */
SITE void tests_between(void)
{
    MPI_Request request;
    int is_sent = 0, is_received = 0;
    MPI_Isend(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD, &request);
    while (!is_sent || !is_received) {
        int is_there = 0;
        if (!is_sent)
            MPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
        if (!is_received)
            MPI_Iprobe(left, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        if (is_there) {
            MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            is_received = 1;
        }
    }
}

/* Unsafe, but a test that says no could have made it do something else, as that of tests_between does. */
SITE void tests_until_sent(void)
{
    MPI_Request request;
    int is_sent = 0;
    MPI_Isend(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD, &request);
    while (!is_sent)
        MPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
    MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The second message is received first where it is there, as it is only where the first one is kept. */
SITE void probes_for_the_second(void)
{
    int is_second = 0;
    for (int tag = 1; rank == 0 && tag <= 2; tag++)
        MPI_Send(out, BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    for (int k = 0; rank == 1 && k < 2000 && !is_second; k++) {
        MPI_Iprobe(0, 2, MPI_COMM_WORLD, &is_second, MPI_STATUS_IGNORE);
        usleep(100);
    }
    for (int k = 0; rank == 1 && k < 2; k++)
        MPI_Recv(in, BYTES, MPI_BYTE, 0, is_second ? 2 - k : 1 + k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 receives from any as many messages as others send: it takes whichever is there. */
SITE void any_source(void)
{
    if (rank == 0)
        for (int i = 1; i < size; i++)
            MPI_Recv(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void *receive_beside(void *unused)
{
    MPI_Recv(in, BYTES, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}

/* Another thread receives. */
SITE void two_threads(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, receive_beside, NULL) == 0);
    MPI_Send(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*exchange)(void);
} exchanges[] = {{"send_first", send_first}, {"wait_for_send_first", wait_for_send_first}, {"barrier_between", barrier_between},
    {"root_sends_first", root_sends_first}, {"root_receives_late", root_receives_late}, {"fence_between", fence_between},
    {"any_after_send", any_after_send}, {"probed", probed}, {"sendrecv", sendrecv}, {"receive_posted_first", receive_posted_first},
    {"all_together", all_together}, {"one_receives_first", one_receives_first}, {"buffered", buffered}, {"tests_between", tests_between},
    {"tests_until_sent", tests_until_sent}, {"probes_for_the_second", probes_for_the_second}, {"any_source", any_source},
    {"two_threads", two_threads}};

int main(int argc, char **argv)
{
    static char buffer[(BYTES + 1024) * 64];
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    rank = comm_rank(MPI_COMM_WORLD), size = comm_size(MPI_COMM_WORLD);
    left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (size_t i = 0; i < sizeof exchanges / sizeof exchanges[0]; i++)
        for (int k = 0; k < ITERATIONS && is_asked(argc, argv, exchanges[i].name); k++) {
            MPI_Barrier(MPI_COMM_WORLD);
            exchanges[i].exchange();
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    void *address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
    MPI_Finalize();
    return 0;
}
