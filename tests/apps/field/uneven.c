/*
 * Question: a halo exchange with MPI_Irecv and MPI_Isend around the computation waits a third of the time. Where do I test?
 * Truth:    nowhere: rank 1 computes three times as long as the other, and tests do not change that.
 * Cure:     even work (argument "cured").
 */
#include "../work.h"

enum { BYTES = 1024, ROUNDS = 60, SHORT_NS = 4000000, LONG_NS = 12000000 };

SITE void exchange(int other, int64_t compute_ns)
{
    static char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    MPI_Irecv(in, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[1]);
    compute(compute_ns);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), cured = is_cured(argc, argv);
    int64_t own = rank == 1 ? LONG_NS : SHORT_NS;
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++)
        exchange(1 - rank, cured ? (SHORT_NS + LONG_NS) / 2 : own);
    MPI_Finalize();
    return 0;
}
