/*
 * MPI_Testsome over four receives, MPI_REQUEST_NULL and an inactive persistent request. A tool that turns it into
 * MPI_Waitsome deadlocks here: the first message is sent only after a test said no.
 * Rows on rank 0: four receives ended by MPI_Testsome, in two to four calls; the tests that completed none, and the last
 * one over nothing active, are in the tally.
 */
#include "check.h"

enum { BYTES = 56, MESSAGES = 4, TOKEN = 50, COUNT = 6, INACTIVE = 3, EMPTY = 0 };

static MPI_Request requests[COUNT];
static char data[COUNT][BYTES];

static int slot_of(int message)
{
    static const int slots[MESSAGES] = {1, 2, 4, 5};
    return slots[message];
}

/* Lets the other rank send two, then tests until both came; returns a bit for each slot completed. */
static unsigned next_two(MPI_Status *statuses)
{
    unsigned seen = 0;
    int got = 0;
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
    while (got < 2) {
        int completed, indices[COUNT];
        MPI_Testsome(COUNT, requests, &completed, indices, statuses);
        CHECK(completed >= 0 && completed <= 2 - got);
        for (int i = 0; i < completed; i++) {
            CHECK(requests[indices[i]] == MPI_REQUEST_NULL && holds(data[indices[i]], BYTES, indices[i]));
            CHECK(statuses == MPI_STATUSES_IGNORE || status_is(&statuses[i], 1, indices[i], BYTES));
            seen |= 1u << indices[i];
        }
        got += completed;
    }
    return seen;
}

static void test_all(void)
{
    MPI_Request inactive;
    MPI_Status statuses[COUNT];
    int completed, indices[COUNT];
    MPI_Recv_init(data[INACTIVE], BYTES, MPI_BYTE, 1, 99, MPI_COMM_WORLD, &inactive);
    requests[EMPTY] = MPI_REQUEST_NULL;
    requests[INACTIVE] = inactive;
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(data[slot_of(i)], BYTES, MPI_BYTE, 1, slot_of(i), MPI_COMM_WORLD, &requests[slot_of(i)]);
    MPI_Testsome(COUNT, requests, &completed, indices, statuses);
    CHECK(completed == 0);
    CHECK(next_two(statuses) == (1u << 4 | 1u << 5));
    CHECK(next_two(MPI_STATUSES_IGNORE) == (1u << 1 | 1u << 2));
    MPI_Testsome(COUNT, requests, &completed, indices, MPI_STATUSES_IGNORE);
    CHECK(completed == MPI_UNDEFINED && requests[INACTIVE] == inactive);
    MPI_Request_free(&requests[INACTIVE]);
}

static void send_all(void)
{
    char out[BYTES];
    for (int i = MESSAGES - 1; i >= 0; i--) {
        if (i % 2 == 1)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(out, BYTES, slot_of(i));
        MPI_Send(out, BYTES, MPI_BYTE, 0, slot_of(i), MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    if (start(&argc, &argv, 2) == 0) {
        test_all();
        puts("none, two, two, nothing");
    } else {
        send_all();
    }
    MPI_Finalize();
    return 0;
}
