/*
 * MPI_Testall over two receives and MPI_REQUEST_NULL: no while one message is missing (and then no request may be
 * touched), then yes for both at once; then over MPI_REQUEST_NULL only.
 * Rows on rank 0: two receives ended by one MPI_Testall, both tested in vain at least once.
 */
#include "check.h"

enum { BYTES = 48, FIRST = 1, SECOND = 2, TOKEN = 3, COUNT = 3 };

static void test_both(void)
{
    char first[BYTES], second[BYTES];
    MPI_Request requests[COUNT];
    MPI_Status statuses[COUNT];
    int flag;
    MPI_Irecv(first, BYTES, MPI_BYTE, 1, FIRST, MPI_COMM_WORLD, &requests[0]);
    requests[1] = MPI_REQUEST_NULL;
    MPI_Irecv(second, BYTES, MPI_BYTE, 1, SECOND, MPI_COMM_WORLD, &requests[2]);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the first message was sent before it */
    MPI_Testall(COUNT, requests, &flag, statuses);
    CHECK(!flag && requests[0] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL);
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
    while (!flag)
        MPI_Testall(COUNT, requests, &flag, statuses);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL);
    CHECK(status_is(&statuses[0], 1, FIRST, BYTES) && status_is_empty(&statuses[1]) &&
          status_is(&statuses[2], 1, SECOND, BYTES));
    CHECK(holds(first, BYTES, FIRST) && holds(second, BYTES, SECOND));
    flag = 0;
    MPI_Testall(COUNT, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag);
}

static void send_both(void)
{
    char first[BYTES], second[BYTES];
    fill(first, BYTES, FIRST);
    fill(second, BYTES, SECOND);
    MPI_Send(first, BYTES, MPI_BYTE, 0, FIRST, MPI_COMM_WORLD);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(second, BYTES, MPI_BYTE, 0, SECOND, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    if (start(&argc, &argv, 2) == 0) {
        test_both();
        puts("no, then both");
    } else {
        send_both();
    }
    MPI_Finalize();
    return 0;
}
