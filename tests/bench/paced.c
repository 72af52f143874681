/*
 * paced ROUNDS: computes the same number of steps in each round, some milliseconds, while a message to itself is under way. What
 * makes it take longer is not in the program.
 */
#include <mpi.h>
#include <stdlib.h>

enum { STEPS = 5000000 };

int main(int argc, char **argv)
{
    static volatile double kept;
    long rounds = argc > 1 ? atol(argv[1]) : 250;
    int sent = 1, received;
    MPI_Init(&argc, &argv);
    for (long round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        double value = kept;
        MPI_Irecv(&received, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(&sent, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[1]);
        for (long i = 0; i < STEPS; i++)
            value = value * 0.999 + 1.5;
        kept = value;
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
