/*
 * MPI_Waitsome over six receives among MPI_REQUEST_NULL and an inactive persistent request. Three messages come before a
 * token and three after it.
 * Rows on rank 0: six receives ended by MPI_Waitsome, in two to six calls, and one call that had nothing to wait for.
 */
#include "check.h"

enum { BYTES = 32, MESSAGES = 6, HALF = 3, TOKEN = 50, COUNT = 9, INACTIVE = 4 };

static int slot_of(int message)
{
    static const int slots[MESSAGES] = {1, 2, 3, 5, 7, 8}; /* 0 and 6 stay null */
    return slots[message];
}

/* Receives `wanted` more messages; returns a bit for each slot completed. */
static unsigned collect(MPI_Request *requests, char data[][BYTES], int wanted, int with_statuses)
{
    unsigned seen = 0;
    while (wanted > 0) {
        int completed, indices[COUNT];
        MPI_Status statuses[COUNT];
        MPI_Waitsome(COUNT, requests, &completed, indices, with_statuses ? statuses : MPI_STATUSES_IGNORE);
        CHECK(completed > 0 && completed <= wanted);
        for (int i = 0; i < completed; i++) {
            int slot = indices[i];
            CHECK(requests[slot] == MPI_REQUEST_NULL && !(seen & 1u << slot));
            CHECK(holds(data[slot], BYTES, slot));
            CHECK(!with_statuses || status_is(&statuses[i], 1, slot, BYTES));
            seen |= 1u << slot;
        }
        wanted -= completed;
    }
    return seen;
}

static void receive_all(void)
{
    static char data[COUNT][BYTES];
    MPI_Request inactive, requests[COUNT];
    int completed, indices[COUNT];
    MPI_Recv_init(data[INACTIVE], BYTES, MPI_BYTE, 1, 99, MPI_COMM_WORLD, &inactive);
    for (int slot = 0; slot < COUNT; slot++)
        requests[slot] = slot == INACTIVE ? inactive : MPI_REQUEST_NULL;
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(data[slot_of(i)], BYTES, MPI_BYTE, 1, slot_of(i), MPI_COMM_WORLD, &requests[slot_of(i)]);
    CHECK(collect(requests, data, HALF, 1) == 0x00e);
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
    CHECK(collect(requests, data, MESSAGES - HALF, 0) == 0x1a0);
    MPI_Waitsome(COUNT, requests, &completed, indices, MPI_STATUSES_IGNORE);
    CHECK(completed == MPI_UNDEFINED && requests[INACTIVE] == inactive);
    MPI_Request_free(&requests[INACTIVE]);
}

static void send_all(void)
{
    char data[BYTES];
    for (int i = 0; i < MESSAGES; i++) {
        if (i == HALF)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(data, BYTES, slot_of(i));
        MPI_Send(data, BYTES, MPI_BYTE, 0, slot_of(i), MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    if (start(&argc, &argv, 2) == 0) {
        receive_all();
        puts("three, then three, then nothing");
    } else {
        send_all();
    }
    MPI_Finalize();
    return 0;
}
