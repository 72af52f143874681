/*
 * MPI_Probe and MPI_Iprobe that learn source, tag and size of a message, then MPI_Recv of just that; MPI_Iprobe that
 * says no.
 * Rows on rank 0: a probe that said yes is a call row, kind recv, with what it found; those that said no are in the tally.
 */
#include "check.h"

enum { ROOM = 500, PROBED = 120, POLLED = 340, TAG = 3, NEVER = 9 };

static void receive_found(const MPI_Status *found, int bytes)
{
    char data[ROOM];
    CHECK(status_is(found, 1, TAG, bytes));
    MPI_Recv(data, bytes, MPI_BYTE, found->MPI_SOURCE, found->MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(data, bytes, bytes));
}

int main(int argc, char **argv)
{
    MPI_Status status;
    if (start(&argc, &argv, 2) == 0) {
        int flag;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        receive_found(&status, PROBED);
        MPI_Iprobe(1, NEVER, MPI_COMM_WORLD, &flag, &status);
        CHECK(!flag);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        while (!flag)
            MPI_Iprobe(1, TAG, MPI_COMM_WORLD, &flag, &status);
        receive_found(&status, POLLED);
        puts("found both");
    } else {
        char data[ROOM];
        fill(data, PROBED, PROBED);
        MPI_Send(data, PROBED, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(data, POLLED, POLLED);
        MPI_Send(data, POLLED, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
