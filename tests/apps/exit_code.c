/*
 * Returns 3 from main after MPI_Finalize. One rank only: launchers kill the other ranks as soon as one has done that.
 * Rows: those of a program that ended well.
 */
#include "check.h"

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("three");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 3;
}
