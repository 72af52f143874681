/*
 * Ten exchanges of 400 bytes, each with one MPI_Waitall over the receive and the send.
 * Rows: a rank has ten sends and ten receives with tag 7, ten MPI_Waitall that completed two each, and three that
 * completed none: over no requests at all, and over MPI_REQUEST_NULL only, with statuses and without.
 */
#include "check.h"

enum { ROUNDS = 10, BYTES = 400, TAG = 7 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, BYTES, round + rank);
        MPI_Irecv(in, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
        CHECK(status_is(&statuses[0], peer, TAG, BYTES));
        CHECK(holds(in, BYTES, round + peer));
    }
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, requests, statuses);
    CHECK(status_is_empty(&statuses[0]) && status_is_empty(&statuses[1]));
    if (rank == 0)
        printf("%d rounds\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
