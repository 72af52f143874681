/*
 * Receives from MPI_ANY_SOURCE with MPI_ANY_TAG, non-blocking and blocking, of messages shorter than the room given.
 * Rows on rank 0: source, tag and bytes are the actual ones whatever the order was; the posted ones are there too.
 */
#include "check.h"

enum { ROOM = 1000, NON_BLOCKING = 10, BLOCKING = 20, UNIT = 100 };

static void check_one(const char *data, const MPI_Status *status, int tens, int *seen)
{
    int source = status->MPI_SOURCE;
    CHECK(source == 1 || source == 2);
    CHECK(status_is(status, source, tens + source, source * UNIT) && holds(data, source * UNIT, source));
    CHECK(!(*seen & 1 << source));
    *seen |= 1 << source;
}

static void receive_all(void)
{
    char data[ROOM];
    int seen = 0;
    MPI_Status status;
    MPI_Request request;
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(data, ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        check_one(data, &status, NON_BLOCKING, &seen);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    seen = 0;
    for (int i = 0; i < 2; i++) {
        MPI_Recv(data, ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        check_one(data, &status, BLOCKING, &seen);
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 3);
    if (rank == 0) {
        receive_all();
        puts("two and two");
    } else {
        char data[ROOM];
        fill(data, rank * UNIT, rank);
        MPI_Send(data, rank * UNIT, MPI_BYTE, 0, NON_BLOCKING + rank, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(data, rank * UNIT, MPI_BYTE, 0, BLOCKING + rank, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
