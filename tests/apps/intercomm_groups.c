/*
 * An inter-communicator made of two groups, without a communicator that holds both (MPI-4).
 * Rows: the call, and messages from side to side with world ranks as peers.
 */
#include "check.h"

enum { TAG = 5, BYTES = 12 };

static MPI_Group pair(int first)
{
    int ranks[] = {first, first + 1};
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &group);
    MPI_Group_free(&world);
    return group;
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 4), low = rank < 2;
    char data[BYTES];
    MPI_Group own = pair(low ? 0 : 2), other = pair(low ? 2 : 0);
    MPI_Comm comm;
    MPI_Intercomm_create_from_groups(own, 0, other, 0, "sides", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    fill(data, BYTES, rank);
    if (low) {
        MPI_Send(data, BYTES, MPI_BYTE, rank, TAG, comm);
    } else {
        MPI_Recv(data, BYTES, MPI_BYTE, rank - 2, TAG, comm, MPI_STATUS_IGNORE);
        CHECK(holds(data, BYTES, rank - 2));
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&own);
    MPI_Group_free(&other);
    if (rank == 0)
        puts("two sides");
    MPI_Finalize();
    return 0;
}
