/*
 * The neighbourhood collectives in their three forms with counts of MPI_Count, over a ring.
 * Rows: as of the forms with int, under their own names.
 */
#include <mpi.h>

enum form { BLOCKING, NON_BLOCKING, PERSISTENT };
static enum form form;

#define WITH_INFO(...) __VA_ARGS__, MPI_INFO_NULL
#define POST(name, request, ...) \
    do { \
        if (form == BLOCKING) \
            MPI_Neighbor_##name##_c(__VA_ARGS__); \
        else if (form == NON_BLOCKING) \
            MPI_Ineighbor_##name##_c(__VA_ARGS__, request); \
        else \
            MPI_Neighbor_##name##_init_c(WITH_INFO(__VA_ARGS__), request); \
    } while (0)
typedef MPI_Count count_t;
typedef MPI_Aint displ_t;
#include "all_neighbors.h"

int main(int argc, char **argv)
{
    struct topology topologies[3];
    MPI_Request requests[OPERATIONS];
    rank = start(&argc, &argv, RANKS);
    make_topologies(topologies);
    for (form = BLOCKING; form <= PERSISTENT; form++) {
        fill_all(&topologies[0]);
        post_all(topologies[0].comm, requests);
        if (form == PERSISTENT)
            MPI_Startall(OPERATIONS, requests);
        if (form != BLOCKING)
            MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
        check_all(&topologies[0]);
    }
    for (int i = 0; i < OPERATIONS; i++)
        MPI_Request_free(&requests[i]);
    for (int i = 0; i < 3; i++)
        MPI_Comm_free(&topologies[i].comm);
    if (rank == 0)
        puts("a ring, three forms");
    MPI_Finalize();
    return 0;
}
