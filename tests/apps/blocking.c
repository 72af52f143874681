/*
 * Every mode of blocking send, received by MPI_Recv; the ready send goes to a receive known to be posted.
 * Rows: four sends on rank 0 with tags 1 to 4 and 10, 20, 30, 40 bytes; three MPI_Recv and one MPI_Irecv with its
 * MPI_Wait on rank 1. The receives give more room than is sent.
 */
#include "check.h"

enum { UNIT = 10, ROOM = 100, STANDARD = 1, SYNCHRONOUS = 2, BUFFERED = 3, READY = 4 };

static void send_all(void)
{
    static char data[READY + 1][ROOM], room[ROOM + MPI_BSEND_OVERHEAD];
    void *detached;
    int size;
    for (int mode = STANDARD; mode <= READY; mode++)
        fill(data[mode], mode * UNIT, mode);
    MPI_Buffer_attach(room, sizeof room);
    MPI_Rsend(data[READY], READY * UNIT, MPI_BYTE, 1, READY, MPI_COMM_WORLD);
    MPI_Send(data[STANDARD], STANDARD * UNIT, MPI_BYTE, 1, STANDARD, MPI_COMM_WORLD);
    MPI_Ssend(data[SYNCHRONOUS], SYNCHRONOUS * UNIT, MPI_BYTE, 1, SYNCHRONOUS, MPI_COMM_WORLD);
    MPI_Bsend(data[BUFFERED], BUFFERED * UNIT, MPI_BYTE, 1, BUFFERED, MPI_COMM_WORLD);
    MPI_Buffer_detach(&detached, &size);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char data[ROOM], ready[ROOM];
    MPI_Request request;
    MPI_Status status;
    if (rank == 1)
        MPI_Irecv(ready, ROOM, MPI_BYTE, 0, READY, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        send_all();
    for (int mode = STANDARD; rank == 1 && mode <= BUFFERED; mode++) {
        MPI_Recv(data, ROOM, MPI_BYTE, 0, mode, MPI_COMM_WORLD, &status);
        CHECK(status_is(&status, 0, mode, mode * UNIT) && holds(data, mode * UNIT, mode));
    }
    if (rank == 1) {
        MPI_Wait(&request, &status);
        CHECK(status_is(&status, 0, READY, READY * UNIT) && holds(ready, READY * UNIT, READY));
    } else {
        puts("four modes sent");
    }
    MPI_Finalize();
    return 0;
}
