/*
 * Every mode of non-blocking send, each with an MPI_Wait of its own.
 * Rows: on rank 0 four sends of 100, 200, 300, 400 bytes with tags 1 to 4; on rank 1 the four receives; on both four
 * MPI_Wait that completed one request each, and a barrier that makes the ready send legal.
 */
#include "check.h"

enum { UNIT = 100, MODES = 4 };

static void send_all(void)
{
    static char data[MODES + 1][MODES * UNIT], room[MODES * UNIT + MPI_BSEND_OVERHEAD];
    MPI_Request request;
    MPI_Buffer_attach(room, sizeof room);
    for (int mode = 1; mode <= MODES; mode++) {
        int bytes = mode * UNIT;
        fill(data[mode], bytes, mode);
        if (mode == 1)
            MPI_Isend(data[mode], bytes, MPI_BYTE, 1, mode, MPI_COMM_WORLD, &request);
        else if (mode == 2)
            MPI_Issend(data[mode], bytes, MPI_BYTE, 1, mode, MPI_COMM_WORLD, &request);
        else if (mode == 3)
            MPI_Ibsend(data[mode], bytes, MPI_BYTE, 1, mode, MPI_COMM_WORLD, &request);
        else
            MPI_Irsend(data[mode], bytes, MPI_BYTE, 1, mode, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request == MPI_REQUEST_NULL);
    }
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    CHECK(detached == room);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    static char data[MODES + 1][MODES * UNIT];
    MPI_Request requests[MODES + 1];
    if (rank == 1)
        for (int mode = 1; mode <= MODES; mode++)
            MPI_Irecv(data[mode], mode * UNIT, MPI_BYTE, 0, mode, MPI_COMM_WORLD, &requests[mode]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        send_all();
    for (int mode = 1; rank == 1 && mode <= MODES; mode++) {
        MPI_Status status;
        MPI_Wait(&requests[mode], &status);
        CHECK(requests[mode] == MPI_REQUEST_NULL);
        CHECK(status_is(&status, 0, mode, mode * UNIT));
        CHECK(holds(data[mode], mode * UNIT, mode));
    }
    if (rank == 0)
        puts("four modes sent");
    MPI_Finalize();
    return 0;
}
