/*
 * The non-blocking neighbourhood collectives.
 * Rows: as those of the blocking ones, as requests.
 */
#define POST(name, request, ...) MPI_Ineighbor_##name(__VA_ARGS__, request)
typedef int count_t, displ_t;
#include "all_neighbors.h"

int main(int argc, char **argv)
{
    struct topology topologies[3];
    rank = start(&argc, &argv, RANKS);
    make_topologies(topologies);
    for (int i = 0; i < 3; i++) {
        MPI_Request requests[OPERATIONS];
        fill_all(&topologies[i]);
        post_all(topologies[i].comm, requests);
        MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
        check_all(&topologies[i]);
        MPI_Comm_free(&topologies[i].comm);
    }
    if (rank == 0)
        puts("cart, graph, dist graph");
    MPI_Finalize();
    return 0;
}
