/*
 * The calls whose counts are MPI_Count, where the MPI has them (MPI 4), else those with int.
 * Rows: the same as of the other calls, with the name that was called.
 */
#include "check.h"

enum { BYTES = 500, TAG = 6, BLOCKING = 7 };

#if MPI_VERSION >= 4
#define LARGE(call) call##_c
#else
#define LARGE(call) call
#endif

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank, sum;
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    fill(out, BYTES, rank);
    LARGE(MPI_Irecv)(in, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    LARGE(MPI_Isend)(out, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(holds(in, BYTES, peer));
    if (rank == 0) {
        LARGE(MPI_Send)(out, BYTES, MPI_BYTE, peer, BLOCKING, MPI_COMM_WORLD);
    } else {
        LARGE(MPI_Recv)(in, BYTES, MPI_BYTE, peer, BLOCKING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(in, BYTES, peer));
    }
    LARGE(MPI_Bcast)(out, BYTES, MPI_BYTE, 1, MPI_COMM_WORLD);
    CHECK(holds(out, BYTES, 1));
    LARGE(MPI_Allreduce)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == 1);
    if (rank == 0)
        puts("large counts");
    MPI_Finalize();
    return 0;
}
