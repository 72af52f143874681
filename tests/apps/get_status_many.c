/*
 * MPI_Request_get_status_any, _all and _some, which look and end nothing: at two receives, none of which has come, then
 * one, then both.
 * Rows: two receives ended by MPI_Waitall and seen complete before; looking that found nothing is in the tally.
 */
#include "check.h"

enum { BYTES = 20, FIRST = 1, SECOND = 2, TOKEN = 3, COUNT = 3 };

static MPI_Request requests[COUNT];

static void look_for_none(void)
{
    int flag, index, completed, indices[COUNT];
    MPI_Request_get_status_any(COUNT, requests, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag && index == MPI_UNDEFINED);
    MPI_Request_get_status_all(COUNT, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    MPI_Request_get_status_some(COUNT, requests, &completed, indices, MPI_STATUSES_IGNORE);
    CHECK(completed == 0);
}

static void look_for_both(void)
{
    int flag = 0, index, completed, indices[COUNT];
    MPI_Status status, statuses[COUNT];
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
    while (!flag)
        MPI_Request_get_status_any(COUNT, requests, &index, &flag, &status);
    CHECK(index == 2 && requests[2] != MPI_REQUEST_NULL && status_is(&status, 1, SECOND, BYTES));
    MPI_Send(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD);
    for (flag = 0; !flag;)
        MPI_Request_get_status_all(COUNT, requests, &flag, statuses);
    CHECK(flag && status_is(&statuses[2], 1, SECOND, BYTES) && status_is_empty(&statuses[1]));
    MPI_Request_get_status_some(COUNT, requests, &completed, indices, statuses);
    CHECK(completed == 2 && status_is(&statuses[indices[1] == 0], 1, FIRST, BYTES));
}

int main(int argc, char **argv)
{
    char first[BYTES], second[BYTES];
    if (start(&argc, &argv, 2) == 0) {
        requests[1] = MPI_REQUEST_NULL;
        MPI_Irecv(first, BYTES, MPI_BYTE, 1, FIRST, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(second, BYTES, MPI_BYTE, 1, SECOND, MPI_COMM_WORLD, &requests[2]);
        look_for_none();
        look_for_both();
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(first, BYTES, FIRST) && holds(second, BYTES, SECOND));
        puts("none, one, both");
    } else {
        for (int tag = SECOND; tag >= FIRST; tag--) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fill(first, BYTES, tag);
            MPI_Send(first, BYTES, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
