/*
 * Large persistent requests, started, computed beside, waited for or tested and started again, among others; with contents of their own
 * each time.
 */
#include "traffic.h"

enum { KINDS = 3, BYTES = 150001, TAG = 70, STEPS = 300000, RESTARTS = 2, ROUNDS = 60 };

static char out[KINDS][BYTES], in[KINDS][BYTES];
static MPI_Request requests[2 * KINDS];

static void make(int peer)
{
    for (int i = 0; i < KINDS; i++)
        MPI_Recv_init(in[i], BYTES, MPI_BYTE, peer, TAG + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send_init(out[0], BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[KINDS]);
    MPI_Ssend_init(out[1], BYTES, MPI_BYTE, peer, TAG + 1, MPI_COMM_WORLD, &requests[KINDS + 1]);
    MPI_Send_init(out[2], BYTES, MPI_BYTE, peer, TAG + 2, MPI_COMM_WORLD, &requests[KINDS + 2]);
}

static void restart(int seed)
{
    for (int i = 0; i < KINDS; i++)
        fill(out[i], BYTES, seed + i + 100 * traffic.rank);
    MPI_Startall(2 * KINDS - 1, requests);
    MPI_Start(&requests[2 * KINDS - 1]);
    CHECK(arithmetic(STEPS) < 2.0);
    int done = 0;
    while (!done) /* the first one is tested for, the others are waited for */
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    CHECK(arithmetic(STEPS) < 2.0);
    MPI_Waitall(2 * KINDS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < KINDS; i++)
        CHECK(requests[i] != MPI_REQUEST_NULL && holds(in[i], BYTES, seed + i + 100 * traffic.peer));
}

static void work(int round)
{
    computing = 0;
    for (int i = 0; i < RESTARTS; i++)
        restart(round * RESTARTS + i);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    make(1 - rank);
    under_traffic(argc, argv, ROUNDS, work);
    for (int i = 0; i < 2 * KINDS; i++)
        MPI_Request_free(&requests[i]);
    if (rank == 0)
        puts("started again and again");
    MPI_Finalize();
    return 0;
}
