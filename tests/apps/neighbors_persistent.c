/*
 * The persistent neighbourhood collectives, each started twice.
 * Rows: a call for each that made one, a request for each activation.
 */
#define POST(name, request, ...) MPI_Neighbor_##name##_init(WITH_INFO(__VA_ARGS__), request)
#define WITH_INFO(...) __VA_ARGS__, MPI_INFO_NULL
typedef int count_t, displ_t;
#include "all_neighbors.h"

enum { ROUNDS = 2 };

int main(int argc, char **argv)
{
    struct topology topologies[3];
    rank = start(&argc, &argv, RANKS);
    make_topologies(topologies);
    for (int i = 0; i < 3; i++) {
        MPI_Request requests[OPERATIONS];
        fill_all(&topologies[i]);
        post_all(topologies[i].comm, requests);
        for (int round = 0; round < ROUNDS; round++) {
            fill_all(&topologies[i]);
            MPI_Startall(OPERATIONS, requests);
            MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
            check_all(&topologies[i]);
        }
        for (int k = 0; k < OPERATIONS; k++)
            MPI_Request_free(&requests[k]);
        MPI_Comm_free(&topologies[i].comm);
    }
    if (rank == 0)
        puts("cart, graph, dist graph");
    MPI_Finalize();
    return 0;
}
