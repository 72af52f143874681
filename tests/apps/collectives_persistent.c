/*
 * Every persistent collective, started together; then two of them again, one by one: MPICH 4.0 cannot start the others twice.
 * Rows: a call for each that made one, and a request for each of its activations, with the bytes that the rank contributes.
 */
#define POST(name, Name, request, ...) MPI_##Name##_init(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, request)
typedef int count_t, displ_t;
#include "all_collectives.h"

static void again(MPI_Request *request)
{
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK(*request != MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    MPI_Request requests[OPERATIONS];
    rank = start(&argc, &argv, RANKS);
    fill_all(0);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[BARRIER]);
    post_moving(requests);
    post_reducing(requests);
    MPI_Startall(OPERATIONS, requests);
    MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
    check_moving(0, !MPICH_OF_4_0);
    check_reducing(0);
    fill_all(1);
    again(&requests[BARRIER]);
    again(&requests[BCAST]);
    CHECK(out[BCAST][0] == element(1, ROOT, 0));
    for (int i = 0; i < OPERATIONS; i++)
        MPI_Request_free(&requests[i]);
    if (rank == 0)
        printf("%d collectives, two of them again\n", OPERATIONS);
    MPI_Finalize();
    return 0;
}
