/*
 * Persistent requests, started together with others that are not: MPI_Waitall over both, five times, and once over
 * inactive ones alone.
 * Rows: the sends and receives of five rounds; two calls that made persistent requests.
 */
#include "check.h"

enum { ROUNDS = 5, BYTES = 28, PERSISTENT = 1, OTHER = 2 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    char out[BYTES], in[BYTES], other_out[BYTES], other_in[BYTES];
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Recv_init(in, BYTES, MPI_BYTE, peer, PERSISTENT, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, BYTES, MPI_BYTE, peer, PERSISTENT, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, BYTES, round);
        fill(other_out, BYTES, round + 50);
        MPI_Startall(2, requests);
        MPI_Irecv(other_in, BYTES, MPI_BYTE, peer, OTHER, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(other_out, BYTES, MPI_BYTE, peer, OTHER, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, statuses);
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
        CHECK(requests[2] == MPI_REQUEST_NULL && requests[3] == MPI_REQUEST_NULL);
        CHECK(status_is(&statuses[0], peer, PERSISTENT, BYTES) && holds(in, BYTES, round));
        CHECK(status_is(&statuses[2], peer, OTHER, BYTES) && holds(other_in, BYTES, round + 50));
    }
    MPI_Waitall(2, requests, statuses); /* both inactive: done at once */
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    if (rank == 0)
        printf("%d rounds\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
