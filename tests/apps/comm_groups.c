/*
 * Communicators made of groups without their parents' other ranks taking part: MPI_Comm_create_group, of the first two
 * ranks and of the last two, with messages.
 * Rows: the calls on those ranks alone, the messages with world ranks as peers.
 */
#include "check.h"

enum { BYTES = 10, TAG = 6 };

static void exchange(int first)
{
    char data[BYTES];
    int pair[] = {first + 1, first};
    MPI_Group world, group;
    MPI_Comm comm;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, pair, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG + first, &comm);
    fill(data, BYTES, first);
    if (comm_rank(comm) == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 1, TAG, comm);
    else
        MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
    CHECK(holds(data, BYTES, first));
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 3);
    if (rank < 2)
        exchange(0);
    if (rank > 0)
        exchange(1);
    if (rank == 0)
        puts("two pairs");
    MPI_Finalize();
    return 0;
}
