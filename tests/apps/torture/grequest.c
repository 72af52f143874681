/*
 * Generalized requests that stay pending among others: what MPI calls for them is called from within MPI_Wait, MPI_Cancel and
 * MPI_Request_free on the thread that is there, and never while the program computes.
 */
#include "traffic.h"

#include <pthread.h>

enum { STEPS = 400000, ROUNDS = 80 };

static int queried, released, cancelled;
static pthread_t main_thread;

static void check_place(void)
{
    CHECK(!computing && pthread_equal(pthread_self(), main_thread));
}

static int query(void *unused, MPI_Status *status)
{
    (void)unused;
    check_place();
    queried++;
    MPI_Status_set_elements(status, MPI_BYTE, 5);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *unused)
{
    (void)unused;
    check_place();
    released++;
    return MPI_SUCCESS;
}

static int cancel(void *unused, int complete)
{
    (void)unused;
    (void)complete;
    check_place();
    cancelled++;
    return MPI_SUCCESS;
}

static void compute(void)
{
    computing = 1;
    CHECK(arithmetic(STEPS) < 2.0);
    computing = 0;
}

static void work(int round)
{
    MPI_Request request, copy;
    MPI_Status status;
    computing = 0;
    MPI_Grequest_start(query, release, cancel, NULL, &request);
    copy = request;
    compute();
    if (round % 2)
        MPI_Cancel(&request);
    MPI_Grequest_complete(copy);
    compute();
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL && count_bytes(&status) == 5);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    main_thread = pthread_self();
    under_traffic(argc, argv, ROUNDS, work);
    CHECK(queried >= released && released >= cancelled);
    if (rank == 0)
        printf("%d released, %d cancelled\n", released, cancelled);
    MPI_Finalize();
    return 0;
}
