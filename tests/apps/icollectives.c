/*
 * Every non-blocking collective, all under way at once, ended by one MPI_Waitall.
 * Rows: a request for each; bytes are what the rank contributes, the peer is the root where there is one.
 */
#define POST(name, Name, request, ...) MPI_I##name(__VA_ARGS__, MPI_COMM_WORLD, request)
typedef int count_t, displ_t;
#include "all_collectives.h"

int main(int argc, char **argv)
{
    MPI_Request requests[OPERATIONS];
    rank = start(&argc, &argv, RANKS);
    fill_all(0);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
    post_moving(requests);
    post_reducing(requests);
    MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
    check_moving(0, 1);
    check_reducing(0);
    if (rank == 0)
        printf("%d collectives\n", OPERATIONS);
    MPI_Finalize();
    return 0;
}
