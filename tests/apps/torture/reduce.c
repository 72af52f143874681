/*
 * Large non-blocking reductions with an operation of the program, among messages. The operation is called from within MPI on the
 * program's own thread, and never in the middle of what the program computes.
 */
#include "traffic.h"

#include <pthread.h>

enum { COUNT = 60000, STEPS = 500000, ROUNDS = 80 };

static int own[COUNT], sum[COUNT], rooted[COUNT];
static pthread_t main_thread;
static long reduced;

/* Not thread-safe, and uses what the computation uses. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    CHECK(!computing && pthread_equal(pthread_self(), main_thread));
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((const int *)in)[i];
    reduced += *count;
}

static void compute(void)
{
    computing = 1;
    long before = reduced;
    CHECK(arithmetic(STEPS) < 2.0 && reduced == before);
    computing = 0;
}

static MPI_Op operation;

static void work(int round)
{
    MPI_Request requests[2];
    computing = 0;
    for (int i = 0; i < COUNT; i++)
        own[i] = i % 1000 + round + traffic.rank;
    MPI_Iallreduce(own, sum, COUNT, MPI_INT, operation, MPI_COMM_WORLD, &requests[0]);
    compute();
    MPI_Ireduce(own, rooted, COUNT, MPI_INT, operation, round % 2, MPI_COMM_WORLD, &requests[1]);
    compute();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++) {
        int expected = 2 * (i % 1000 + round) + 1;
        CHECK(sum[i] == expected && (traffic.rank != round % 2 || rooted[i] == expected));
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    main_thread = pthread_self();
    MPI_Op_create(add, 1, &operation);
    under_traffic(argc, argv, ROUNDS, work);
    MPI_Op_free(&operation);
    if (rank == 0)
        puts("reduced where it was waited for");
    MPI_Finalize();
    return 0;
}
