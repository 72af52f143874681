/*
 * Question: a dynamic sparse exchange (MPI_Issend, MPI_Iprobe and MPI_Test in a loop, then MPI_Ibarrier) spends a quarter of the
 *           time in MPI_Test. Is the consensus too dear?
 * Truth:    no: rank 1 computes five times as long, and the loop waits for it.
 * Cure:     even work (argument "cured").
 */
#include "../work.h"

enum { BYTES = 256, ROUNDS = 50, SHORT_NS = 2000000, LONG_NS = 10000000 };

SITE void exchange(int other, int round)
{
    static char out[BYTES], in[BYTES];
    MPI_Request sent, all;
    int is_at_barrier = 0, done = 0, found;
    MPI_Status status;
    MPI_Issend(out, BYTES, MPI_BYTE, other, round, MPI_COMM_WORLD, &sent);
    while (!done) {
        MPI_Iprobe(MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &found, &status);
        if (found)
            MPI_Recv(in, BYTES, MPI_BYTE, status.MPI_SOURCE, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (is_at_barrier) {
            MPI_Test(&all, &done, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Test(&sent, &is_at_barrier, MPI_STATUS_IGNORE);
        if (is_at_barrier)
            MPI_Ibarrier(MPI_COMM_WORLD, &all);
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), cured = is_cured(argc, argv);
    int64_t own = rank == 1 ? LONG_NS : SHORT_NS;
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++) {
        compute(cured ? (SHORT_NS + LONG_NS) / 2 : own);
        exchange(1 - rank, round);
    }
    MPI_Finalize();
    return 0;
}
