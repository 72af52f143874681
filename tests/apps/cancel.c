/*
 * MPI_Cancel of receives that nothing is ever sent to: three ended one by one, two together with a receive that does get
 * its message.
 * Rows on rank 0: five receives ended as cancelled with 0 bytes, one waited for; five MPI_Cancel.
 */
#include "check.h"

enum { BYTES = 80, NEVER = 1, MESSAGE = 2 };

static void cancelled_alone(char *data)
{
    MPI_Request request;
    MPI_Status status;
    int flag;
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(data, BYTES, MPI_BYTE, 1, NEVER, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        CHECK(request != MPI_REQUEST_NULL);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && request == MPI_REQUEST_NULL);
    }
}

static void cancelled_among_others(char *data)
{
    static char never[2][BYTES];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int flags[3];
    MPI_Irecv(never[0], BYTES, MPI_BYTE, 1, NEVER, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data, BYTES, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(never[1], BYTES, MPI_BYTE, MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &requests[2]);
    MPI_Cancel(&requests[0]);
    MPI_Cancel(&requests[2]);
    MPI_Waitall(3, requests, statuses);
    for (int i = 0; i < 3; i++)
        MPI_Test_cancelled(&statuses[i], &flags[i]);
    CHECK(flags[0] && !flags[1] && flags[2]);
    CHECK(status_is(&statuses[1], 1, MESSAGE, BYTES) && holds(data, BYTES, MESSAGE));
}

int main(int argc, char **argv)
{
    char data[BYTES];
    if (start(&argc, &argv, 2) == 0) {
        cancelled_alone(data);
        cancelled_among_others(data);
        puts("five cancelled, one received");
    } else {
        fill(data, BYTES, MESSAGE);
        MPI_Send(data, BYTES, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
