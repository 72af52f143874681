/*
 * Every rank for itself: a hundred messages, then rank 0 says so. For tests of what lapscope does when something is wrong
 * around it.
 * Rows: 100 sends and receives of 1000 bytes, ended by 100 MPI_Waitall.
 */
#include "check.h"

enum { ROUNDS = 100, BYTES = 1000, TAG = 1 };

int main(int argc, char **argv)
{
    static char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, BYTES, round);
        MPI_Irecv(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(out, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, round));
    }
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("%d messages to itself\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
