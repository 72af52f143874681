/* Programs with partitioned messages, of MPIs that have them. */
#include "hang.h"

enum { PARTITIONS = 4 };

static void begin(MPI_Request *request)
{
    if (rank == 0)
        MPI_Psend_init(to_others, PARTITIONS, SMALL, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    else
        MPI_Precv_init(from_others, PARTITIONS, SMALL, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    MPI_Start(request);
}

/* One of the partitions is never made ready, and the thread that would waits. */
SITE void never_ready(void)
{
    MPI_Request request;
    here();
    begin(&request);
    if (rank == 0)
        MPI_Pready_range(0, PARTITIONS - 2, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Slow: the last partition is ready after some time. */
SITE void ready_late(void)
{
    MPI_Request request;
    here();
    begin(&request);
    if (rank == 0) {
        MPI_Pready_range(0, PARTITIONS - 2, request);
        computes(seconds);
        MPI_Pready(PARTITIONS - 1, request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(never_ready), PROGRAM(ready_late)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
