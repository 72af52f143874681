/*
 * A software-defined counter that goes up by known amounts: between the post and the wait of requests, inside an MPI call
 * (MPI_Comm_dup calls the copy function of an attribute once), and after requests have ended. With `die` as argument the
 * ranks are killed behind the last wait.
 *
 * In round i, from 1 to ROUNDS, on each rank: MPI_Irecv, 10, MPI_Isend, 100 * i, MPI_Comm_dup with 1000 inside, 7,
 * MPI_Waitall, 50000. Then a receive that another thread posts and this one waits for.
 */
#include "check.h"

#include <pthread.h>
#include <sde_lib.h>
#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 3, BYTES = 200, MESSAGE = 4, OF_THREAD = 5 };

static long long work;
static char received[BYTES];
static MPI_Request of_thread;
static int other;

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)extra;
    work += 1000;
    *(void **)copied = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static void round_of(int i, MPI_Comm with_attribute)
{
    char sent[BYTES];
    MPI_Request requests[2];
    MPI_Comm copy;
    fill(sent, BYTES, i);
    MPI_Irecv(received, BYTES, MPI_BYTE, other, MESSAGE, MPI_COMM_WORLD, &requests[0]);
    work += 10;
    MPI_Isend(sent, BYTES, MPI_BYTE, other, MESSAGE, MPI_COMM_WORLD, &requests[1]);
    work += 100 * i;
    MPI_Comm_dup(with_attribute, &copy);
    work += 7;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    work += 50000;
    CHECK(holds(received, BYTES, i));
    MPI_Comm_free(&copy);
}

static void *post_receive(void *unused)
{
    MPI_Irecv(received, BYTES, MPI_BYTE, other, OF_THREAD, MPI_COMM_WORLD, &of_thread);
    return unused;
}

static void receive_of_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, post_receive, NULL) == 0);
    pthread_join(thread, NULL);
    MPI_Send(received, 0, MPI_BYTE, other, OF_THREAD, MPI_COMM_WORLD);
    MPI_Wait(&of_thread, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    papi_handle_t library = papi_sde_init("app");
    papi_sde_register_counter(library, "WORK", PAPI_SDE_RO | PAPI_SDE_DELTA, PAPI_SDE_long_long, &work);
    papi_sde_describe_counter(library, "WORK", "items of work");
    int provided, key;
    MPI_Comm with_attribute;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    other = 1 - comm_rank(MPI_COMM_WORLD);
    MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &with_attribute);
    MPI_Comm_set_attr(with_attribute, key, &work);
    for (int i = 1; i <= ROUNDS; i++)
        round_of(i, with_attribute);
    receive_of_thread();
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "die"))
        kill(getpid(), SIGKILL);
    CHECK(work == ROUNDS * (10 + 1000 + 7 + 50000) + 100 * (1 + 2 + 3));
    MPI_Comm_free(&with_attribute);
    MPI_Finalize();
    return 0;
}
