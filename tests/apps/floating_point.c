/* A program that looks at the flags of its floating-point arithmetic. Prints behind how many of its rounds any is up; the first, in
 * which MPI prepares itself, does not count. */
#include "check.h"

#include <fenv.h>

enum { ROUNDS = 20000, BYTES = 100 };

int main(int argc, char **argv)
{
    static char sent[BYTES], received[BYTES];
    int raised = 0;
    MPI_Init(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        feclearexcept(FE_ALL_EXCEPT);
        MPI_Irecv(received, BYTES, MPI_BYTE, 0, round % 100, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(sent, BYTES, MPI_BYTE, 0, round % 100, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        raised += round && fetestexcept(FE_ALL_EXCEPT);
    }
    printf("raised in %d rounds\n", raised);
    MPI_Finalize();
    return 0;
}
