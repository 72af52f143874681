/*
 * MPI_Testany over two receives, MPI_REQUEST_NULL and an inactive persistent request: no, one, the other, nothing left.
 * A tool that waits inside it would hang here: the first message is sent only after a test said no.
 * Rows on rank 0: two receives, each ended by an MPI_Testany of its own.
 */
#include "check.h"

enum { BYTES = 72, FIRST = 1, SECOND = 2, TOKEN = 3, COUNT = 5 };

static MPI_Request requests[COUNT];

/* Lets the other rank send, then tests until something completed; returns its index. */
static int next_completed(MPI_Status *status)
{
    int flag = 0, index;
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
    while (!flag)
        MPI_Testany(COUNT, requests, &index, &flag, status);
    return index;
}

static void test_each(void)
{
    char first[BYTES], second[BYTES], never[BYTES];
    MPI_Status status;
    int flag, index;
    requests[0] = requests[3] = MPI_REQUEST_NULL;
    MPI_Recv_init(never, BYTES, MPI_BYTE, 1, 99, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(first, BYTES, MPI_BYTE, 1, FIRST, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(second, BYTES, MPI_BYTE, 1, SECOND, MPI_COMM_WORLD, &requests[4]);
    MPI_Testany(COUNT, requests, &index, &flag, &status);
    CHECK(!flag && index == MPI_UNDEFINED);

    CHECK(next_completed(&status) == 4 && requests[4] == MPI_REQUEST_NULL);
    CHECK(status_is(&status, 1, SECOND, BYTES) && holds(second, BYTES, SECOND));
    CHECK(next_completed(MPI_STATUS_IGNORE) == 2 && requests[2] == MPI_REQUEST_NULL);
    CHECK(holds(first, BYTES, FIRST));

    flag = 0;
    MPI_Testany(COUNT, requests, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED); /* MPICH 4.0 leaves the status alone here */
    MPI_Request_free(&requests[1]);
}

static void send_each(void)
{
    char data[BYTES];
    for (int tag = SECOND; tag >= FIRST; tag--) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(data, BYTES, tag);
        MPI_Send(data, BYTES, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    if (start(&argc, &argv, 2) == 0) {
        test_each();
        puts("no, second, first, nothing");
    } else {
        send_each();
    }
    MPI_Finalize();
    return 0;
}
