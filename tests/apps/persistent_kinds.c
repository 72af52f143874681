/*
 * Each kind of persistent request: the four modes of sending and a receive from anybody, by MPI_Start and MPI_Startall;
 * MPI_Wait and MPI_Test of inactive ones; one that is freed while active, one that is cancelled and then used again.
 * Rows: a call for each that made one; a request for each activation.
 */
#include "check.h"

enum { BYTES = 44, KINDS = 4, ROUNDS = 3, ROOM = 100, FREED = 20, CANCELLED = 21 };

static char buffer[1 << 16];

static void send_kinds(void)
{
    char data[KINDS][BYTES];
    MPI_Request requests[KINDS];
    MPI_Send_init(data[0], BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Bsend_init(data[1], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Ssend_init(data[2], BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Rsend_init(data[3], BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[3]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KINDS; i++)
            fill(data[i], BYTES, round + i);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < KINDS; i++)
            MPI_Start(&requests[i]);
        for (int i = 0; i < KINDS; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < KINDS; i++) {
        CHECK(requests[i] != MPI_REQUEST_NULL);
        MPI_Request_free(&requests[i]);
    }
}

static void receive_kinds(void)
{
    char data[KINDS][ROOM];
    MPI_Request requests[KINDS];
    MPI_Status statuses[KINDS];
    int flag;
    for (int i = 0; i < KINDS; i++)
        MPI_Recv_init(data[i], ROOM, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : 0, i, MPI_COMM_WORLD, &requests[i]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(KINDS, requests);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(KINDS, requests, statuses);
        for (int i = 0; i < KINDS; i++)
            CHECK(status_is(&statuses[i], 0, i, BYTES) && holds(data[i], BYTES, round + i));
    }
    MPI_Wait(&requests[0], &statuses[0]);
    CHECK(status_is_empty(&statuses[0]) && requests[0] != MPI_REQUEST_NULL);
    MPI_Test(&requests[1], &flag, &statuses[1]);
    CHECK(flag && status_is_empty(&statuses[1]));
    for (int i = 0; i < KINDS; i++)
        MPI_Request_free(&requests[i]);
}

/* The message of a request that is freed while active still goes out. */
static void free_active(int rank)
{
    static char data[BYTES];
    MPI_Request request;
    if (rank == 0) {
        fill(data, BYTES, FREED);
        MPI_Ssend_init(data, BYTES, MPI_BYTE, 1, FREED, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Recv(data, BYTES, MPI_BYTE, 0, FREED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(data, BYTES, FREED));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cancel_active(int rank)
{
    char data[BYTES];
    MPI_Request request;
    MPI_Status status;
    int flag;
    fill(data, BYTES, CANCELLED);
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(data, BYTES, MPI_BYTE, 1, CANCELLED, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv_init(data, BYTES, MPI_BYTE, 0, CANCELLED, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && request != MPI_REQUEST_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    CHECK(status_is(&status, 0, CANCELLED, BYTES) && holds(data, BYTES, CANCELLED));
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), size;
    void *back;
    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank == 0)
        send_kinds();
    else
        receive_kinds();
    free_active(rank);
    cancel_active(rank);
    MPI_Buffer_detach(&back, &size);
    CHECK(back == buffer && size == (int)sizeof buffer);
    if (rank == 0)
        printf("%d kinds, %d times\n", KINDS, ROUNDS);
    MPI_Finalize();
    return 0;
}
