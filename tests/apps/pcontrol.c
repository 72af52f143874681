/*
 * MPI_Pcontrol(0) and MPI_Pcontrol(1) around messages: tag 1 before, tag 2 while off, tag 3 after. One request is posted
 * before and completed while off, one posted while off and completed after.
 * Rows: tag 1 and 3 are there, tag 2 is not; the request that was already followed keeps its end; the one posted while
 * off is unknown.
 */
#include "check.h"

enum { BYTES = 12, BEFORE = 1, OFF = 2, AFTER = 3, INTO_OFF = 4, OUT_OF_OFF = 5 };

static void exchange(int peer, int tag)
{
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    fill(out, BYTES, tag);
    MPI_Irecv(in, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(holds(in, BYTES, tag));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    char into[BYTES], out_of[BYTES], data[BYTES];
    MPI_Request request;
    exchange(peer, BEFORE);
    MPI_Irecv(into, BYTES, MPI_BYTE, peer, INTO_OFF, MPI_COMM_WORLD, &request);

    MPI_Pcontrol(0);
    exchange(peer, OFF);
    fill(data, BYTES, INTO_OFF);
    MPI_Send(data, BYTES, MPI_BYTE, peer, INTO_OFF, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(into, BYTES, INTO_OFF));
    MPI_Irecv(out_of, BYTES, MPI_BYTE, peer, OUT_OF_OFF, MPI_COMM_WORLD, &request);

    MPI_Pcontrol(1);
    fill(data, BYTES, OUT_OF_OFF);
    MPI_Send(data, BYTES, MPI_BYTE, peer, OUT_OF_OFF, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(out_of, BYTES, OUT_OF_OFF));
    exchange(peer, AFTER);
    if (rank == 0)
        puts("before, off, after");
    MPI_Finalize();
    return 0;
}
