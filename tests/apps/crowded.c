/*
 * A ring of ranks that exchange, compute and reduce, step by step: harmless with a processor for each rank. With fewer all
 * ranks are ready to run and wait for their turn, which looks like late partners and slow transfers.
 *
 *   crowded [STEPS]
 */
#include "work.h"

enum { BYTES = 8192, WORK_NS = 2000000 };

SITE void exchange(char *to, char *from, int step)
{
    int rank = comm_rank(MPI_COMM_WORLD), size = comm_size(MPI_COMM_WORLD);
    MPI_Request requests[2];
    memset(to, value_of(step), BYTES);
    MPI_Irecv(from, BYTES, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(to, BYTES, MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
    compute(WORK_NS);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(is_message(from, BYTES, step));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    char *to = make_buffer(BYTES), *from = make_buffer(BYTES);
    calibrate_work();
    for (int step = 0; step < steps; step++) {
        int sum, one = 1;
        exchange(to, from, step);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == comm_size(MPI_COMM_WORLD));
    }
    free(to);
    free(from);
    MPI_Finalize();
    return 0;
}
