/*
 * MPI_Test: no while the message cannot have been sent, then in a loop until yes, then on MPI_REQUEST_NULL.
 * Rows on rank 0: one receive ended by MPI_Test after at least one unsuccessful test, one MPI_Test that completed it; the tests that
 * said no, and the one of MPI_REQUEST_NULL, are in the tally.
 */
#include "check.h"

enum { BYTES = 128, MESSAGE = 5, TOKEN = 6 };

int main(int argc, char **argv)
{
    char data[BYTES];
    if (start(&argc, &argv, 2) == 0) {
        MPI_Request request, before;
        MPI_Status status;
        int flag;
        MPI_Irecv(data, BYTES, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &request);
        before = request;
        MPI_Test(&request, &flag, &status);
        CHECK(!flag && request == before);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
        while (!flag)
            MPI_Test(&request, &flag, &status);
        CHECK(request == MPI_REQUEST_NULL && status_is(&status, 1, MESSAGE, BYTES));
        CHECK(holds(data, BYTES, MESSAGE));
        flag = 0;
        MPI_Test(&request, &flag, &status);
        CHECK(flag && status_is_empty(&status));
        puts("no, then yes");
    } else {
        fill(data, BYTES, MESSAGE);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, BYTES, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
