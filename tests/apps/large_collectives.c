/*
 * Every collective in its three forms with counts of MPI_Count: blocking, non-blocking, persistent.
 * Rows: as of the forms with int, under their own names.
 */
#include <mpi.h>
#include <stddef.h>

enum form { BLOCKING, NON_BLOCKING, PERSISTENT };
static enum form form;

#define POST(name, Name, request, ...) \
    do { \
        if (form == BLOCKING) \
            MPI_##Name##_c(__VA_ARGS__, MPI_COMM_WORLD); \
        else if (form == NON_BLOCKING) \
            MPI_I##name##_c(__VA_ARGS__, MPI_COMM_WORLD, request); \
        else \
            MPI_##Name##_init_c(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, request); \
    } while (0)
typedef MPI_Count count_t;
typedef MPI_Aint displ_t;
#include "all_collectives.h"

enum { FIRST = BCAST, POSTED = OPERATIONS - FIRST };

int main(int argc, char **argv)
{
    MPI_Request requests[OPERATIONS];
    rank = start(&argc, &argv, RANKS);
    for (form = BLOCKING; form <= PERSISTENT; form++) {
        fill_all(form);
        post_moving(requests);
        post_reducing(requests);
        if (form == PERSISTENT)
            MPI_Startall(POSTED, &requests[FIRST]);
        if (form != BLOCKING)
            MPI_Waitall(POSTED, &requests[FIRST], MPI_STATUSES_IGNORE);
        check_moving(form, form != PERSISTENT || !MPICH_OF_4_0);
        check_reducing(form);
    }
    for (int i = FIRST; i < OPERATIONS; i++)
        MPI_Request_free(&requests[i]);
    if (rank == 0)
        printf("%d collectives, three forms\n", POSTED);
    MPI_Finalize();
    return 0;
}
