/*
 * Requests that are waited for at once, mixed with such that have computation beside them, as in overlap benchmarks: what the
 * first take is what the second could hide. All ranks meet before each.
 *
 *   overlap_at_once BYTES WORK_US TIMES
 *
 * TIMES MPI_Ialltoall of BYTES to each rank, and exchanges of BYTES with a neighbour, of either kind.
 */
#include "work.h"

static char *out, *in;
static int bytes, neighbour;

SITE void exchange(int64_t work)
{
    MPI_Request requests[2];
    MPI_Irecv(in, bytes, MPI_BYTE, neighbour, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, neighbour, 0, MPI_COMM_WORLD, &requests[1]);
    if (work)
        compute(work);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

SITE void all_to_all(int64_t work)
{
    MPI_Request request;
    MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    if (work)
        compute(work);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int ranks = comm_size(MPI_COMM_WORLD);
    CHECK(argc == 4 && ranks % 2 == 0);
    bytes = atoi(argv[1]);
    neighbour = comm_rank(MPI_COMM_WORLD) ^ 1;
    out = make_buffer((size_t)bytes * (size_t)ranks);
    in = make_buffer((size_t)bytes * (size_t)ranks);
    calibrate_work();
    for (int i = 0; i < 2 * atoi(argv[3]); i++) {
        int64_t work = i % 2 ? atoi(argv[2]) * 1000LL : 0;
        MPI_Barrier(MPI_COMM_WORLD);
        exchange(work);
        MPI_Barrier(MPI_COMM_WORLD);
        all_to_all(work);
    }
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
