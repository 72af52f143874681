/*
 * MPI_Waitany over two receives among MPI_REQUEST_NULL and an inactive persistent request. The message for the second
 * receive is sent first, the other only after a token, so each call has one right answer.
 * Rows on rank 0: two receives ended by MPI_Waitany (completed=1), one MPI_Waitany that had nothing to wait for, and the
 * token. On rank 1: the sends and the token's receive.
 */
#include "check.h"

enum { BYTES = 64, FIRST = 1, SECOND = 2, TOKEN = 3, COUNT = 5 };

static void receive_two(void)
{
    char first[BYTES], second[BYTES], never[BYTES];
    MPI_Request inactive, requests[COUNT] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                             MPI_REQUEST_NULL};
    MPI_Status status;
    int index;
    MPI_Recv_init(never, BYTES, MPI_BYTE, 1, 99, MPI_COMM_WORLD, &inactive);
    requests[2] = inactive;
    MPI_Irecv(first, BYTES, MPI_BYTE, 1, FIRST, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(second, BYTES, MPI_BYTE, 1, SECOND, MPI_COMM_WORLD, &requests[3]);

    MPI_Waitany(COUNT, requests, &index, &status);
    CHECK(index == 3 && requests[3] == MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
    CHECK(status_is(&status, 1, SECOND, BYTES) && holds(second, BYTES, SECOND));
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);

    MPI_Waitany(COUNT, requests, &index, MPI_STATUS_IGNORE);
    CHECK(index == 1 && requests[1] == MPI_REQUEST_NULL && holds(first, BYTES, FIRST));

    MPI_Waitany(COUNT, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED && status_is_empty(&status));
    CHECK(requests[2] == inactive);
    MPI_Request_free(&requests[2]);
}

static void send_two(void)
{
    char data[BYTES];
    fill(data, BYTES, SECOND);
    MPI_Send(data, BYTES, MPI_BYTE, 0, SECOND, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fill(data, BYTES, FIRST);
    MPI_Send(data, BYTES, MPI_BYTE, 0, FIRST, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    if (start(&argc, &argv, 2) == 0) {
        receive_two();
        puts("second, first, nothing");
    } else {
        send_two();
    }
    MPI_Finalize();
    return 0;
}
