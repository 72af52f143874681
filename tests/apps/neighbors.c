/*
 * The blocking neighbourhood collectives.
 * Rows: bytes are what the rank contributes: its block once for the gathering ones, one for each rank that it sends to for
 * the others.
 */
#define POST(name, request, ...) ((void)(request), MPI_Neighbor_##name(__VA_ARGS__))
typedef int count_t, displ_t;
#include "all_neighbors.h"

int main(int argc, char **argv)
{
    struct topology topologies[3];
    MPI_Request unused[OPERATIONS];
    rank = start(&argc, &argv, RANKS);
    make_topologies(topologies);
    for (int i = 0; i < 3; i++) {
        fill_all(&topologies[i]);
        post_all(topologies[i].comm, unused);
        check_all(&topologies[i]);
        MPI_Comm_free(&topologies[i].comm);
    }
    if (rank == 0)
        puts("cart, graph, dist graph");
    MPI_Finalize();
    return 0;
}
