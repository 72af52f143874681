/*
 * Messages of a rank to itself on MPI_COMM_SELF, and a collective on it.
 * Rows: the peer is the rank's own world rank, although it is rank 0 of MPI_COMM_SELF.
 */
#include "check.h"

enum { BYTES = 24, TAG = 4 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), sum = 0;
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    fill(out, BYTES, rank);
    MPI_Irecv(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK(status_is(&statuses[0], 0, TAG, BYTES) && holds(in, BYTES, rank));
    MPI_Sendrecv(out, BYTES, MPI_BYTE, 0, TAG, in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    CHECK(sum == rank);
    if (rank == 0)
        puts("to itself");
    MPI_Finalize();
    return 0;
}
