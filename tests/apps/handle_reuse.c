/*
 * Five hundred rounds in which MPI uses the same request handles again and again, for sends and receives in turn and
 * with five different sizes and tags, while one receive stays pending from the first round to the last.
 * Rows of a rank: 100 sends and 100 receives of each size, 500 MPI_Waitall with two each; one receive ended by MPI_Wait.
 */
#include "check.h"

enum { ROUNDS = 500, SIZES = 5, UNIT = 16, LAST = 77 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    char out[SIZES * UNIT], in[SIZES * UNIT], last[UNIT];
    MPI_Request pending, requests[2];
    MPI_Status status;
    MPI_Irecv(last, UNIT, MPI_BYTE, peer, LAST, MPI_COMM_WORLD, &pending);
    for (int round = 0; round < ROUNDS; round++) {
        int size = 1 + round % SIZES, receive_at = round % 2;
        fill(out, size * UNIT, round);
        for (int at = 0; at < 2; at++)
            if (at == receive_at)
                MPI_Irecv(in, size * UNIT, MPI_BYTE, peer, size, MPI_COMM_WORLD, &requests[at]);
            else
                MPI_Isend(out, size * UNIT, MPI_BYTE, peer, size, MPI_COMM_WORLD, &requests[at]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, size * UNIT, round));
    }
    fill(out, UNIT, LAST);
    MPI_Send(out, UNIT, MPI_BYTE, peer, LAST, MPI_COMM_WORLD);
    MPI_Wait(&pending, &status);
    CHECK(status_is(&status, peer, LAST, UNIT) && holds(last, UNIT, LAST));
    if (rank == 0)
        printf("%d rounds\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
