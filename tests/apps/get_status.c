/*
 * MPI_Request_get_status looks without ending: no, then yes as often as asked, the request is still there for MPI_Wait.
 * Rows on rank 0: one receive ended by MPI_Wait, tested in vain at least once and seen complete before its end; no call row of
 * MPI_Request_get_status, all of them are in the tally.
 */
#include "check.h"

enum { BYTES = 96, MESSAGE = 8, TOKEN = 9 };

int main(int argc, char **argv)
{
    char data[BYTES];
    if (start(&argc, &argv, 2) == 0) {
        MPI_Request request;
        MPI_Status status;
        int flag;
        MPI_Irecv(data, BYTES, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &request);
        MPI_Request_get_status(request, &flag, &status);
        CHECK(!flag);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
        while (!flag)
            MPI_Request_get_status(request, &flag, &status);
        CHECK(status_is(&status, 1, MESSAGE, BYTES) && holds(data, BYTES, MESSAGE));
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        CHECK(flag);
        MPI_Wait(&request, &status);
        CHECK(request == MPI_REQUEST_NULL && status_is(&status, 1, MESSAGE, BYTES));
        flag = 0;
        MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status);
        CHECK(flag && status_is_empty(&status));
        puts("no, yes, yes");
    } else {
        fill(data, BYTES, MESSAGE);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, BYTES, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
