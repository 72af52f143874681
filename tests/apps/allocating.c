/*
 * Allocates a thousand pieces of its own between MPI_Init and MPI_Finalize, beside a hundred messages to itself: however
 * little the MPI allocates, an allocator in force has served these.
 */
#include <stdlib.h>

#include "check.h"

enum { ROUNDS = 100, PIECES = 10, BYTES = 1000, TAG = 1 };

int main(int argc, char **argv)
{
    static char in[BYTES];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        char *volatile pieces[PIECES]; // volatile: the compiler may not leave allocations out
        for (int piece = 0; piece < PIECES; piece++) {
            pieces[piece] = malloc(BYTES);
            CHECK(pieces[piece] != NULL);
        }
        fill(pieces[0], BYTES, round);
        MPI_Irecv(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(pieces[0], BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, round));
        for (int piece = 0; piece < PIECES; piece++)
            free(pieces[piece]);
    }
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("%d messages to itself\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
