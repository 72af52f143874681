/*
 * MPI_Pcontrol with more arguments than the level, which belong to nobody here: levels that mean nothing change nothing.
 * Rows: all messages but the one sent at level 0, and the one mark of a level that means something.
 */
#include "check.h"

enum { BYTES = 8 };

static void exchange(int rank, int tag)
{
    char data[BYTES];
    fill(data, BYTES, tag);
    if (rank == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    else
        MPI_Recv(data, BYTES, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(data, BYTES, tag));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), number = 5;
    MPI_Pcontrol(7, "region", &number, 2.5);
    exchange(rank, 1);
    MPI_Pcontrol(-7, "region", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0);
    exchange(rank, 2);
    MPI_Pcontrol(0, &number);
    exchange(rank, 3);
    MPI_Pcontrol(1, "on again", 1, 2, 3, 4, 5, 6, 7, 8);
    exchange(rank, 4);
    if (rank == 0)
        puts("levels");
    MPI_Finalize();
    return 0;
}
