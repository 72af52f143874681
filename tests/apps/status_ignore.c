/*
 * Every completing call, each once with MPI_STATUS(ES)_IGNORE and once with statuses that were filled with a pattern
 * before: source, tag and count are right, the error field of a single status is left alone (MPI-4.1 3.2.5).
 * Rows on rank 1: the receives have the bytes that came (the message number), not the room that was given (100), also
 * where the status was ignored.
 */
#include "check.h"

enum { ROOM = 100, PATTERN = 0x5a5a5a5a };

typedef void complete_fn(MPI_Request *request, MPI_Status *status);

static void wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Wait(request, status);
}

static void waitany(MPI_Request *request, MPI_Status *status)
{
    int index;
    MPI_Waitany(1, request, &index, status);
    CHECK(index == 0);
}

static void test(MPI_Request *request, MPI_Status *status)
{
    for (int flag = 0; !flag;)
        MPI_Test(request, &flag, status);
}

static void testany(MPI_Request *request, MPI_Status *status)
{
    for (int flag = 0, index; !flag;)
        MPI_Testany(1, request, &index, &flag, status);
}

/* The calls that take arrays: `status` is one of the application's, or MPI_STATUSES_IGNORE. */
static void waitall(MPI_Request *request, MPI_Status *status)
{
    MPI_Waitall(1, request, status);
}

static void waitsome(MPI_Request *request, MPI_Status *status)
{
    int completed, index;
    MPI_Waitsome(1, request, &completed, &index, status);
    CHECK(completed == 1 && index == 0);
}

static void testall(MPI_Request *request, MPI_Status *status)
{
    for (int flag = 0; !flag;)
        MPI_Testall(1, request, &flag, status);
}

static void testsome(MPI_Request *request, MPI_Status *status)
{
    for (int completed = 0, index; !completed;)
        MPI_Testsome(1, request, &completed, &index, status);
}

static complete_fn *const single[] = {wait, waitany, test, testany};
static complete_fn *const several[] = {waitall, waitsome, testall, testsome};
enum { SINGLE = 4, SEVERAL = 4, MESSAGES = 2 * (SINGLE + SEVERAL) };

static void receive(int message)
{
    static char data[ROOM];
    MPI_Request request;
    MPI_Status status;
    int call = message / 2, ignore = message % 2;
    memset(&status, 0x5a, sizeof status);
    MPI_Irecv(data, ROOM, MPI_BYTE, MPI_ANY_SOURCE, message, MPI_COMM_WORLD, &request);
    if (call < SINGLE)
        single[call](&request, ignore ? MPI_STATUS_IGNORE : &status);
    else
        several[call - SINGLE](&request, ignore ? MPI_STATUSES_IGNORE : &status);
    CHECK(request == MPI_REQUEST_NULL && holds(data, message, message));
    if (!ignore)
        CHECK(status_is(&status, 0, message, message));
    if (!ignore && call < SINGLE)
        CHECK(status.MPI_ERROR == PATTERN);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    for (int message = 0; message < MESSAGES; message++) {
        char data[ROOM];
        fill(data, message, message);
        if (rank == 0)
            MPI_Ssend(data, message, MPI_BYTE, 1, message, MPI_COMM_WORLD);
        else
            receive(message);
    }
    if (rank == 0)
        printf("%d messages\n", MESSAGES);
    MPI_Finalize();
    return 0;
}
