/*
 * Matched probes: rank 0 asks for four messages, blocking and not, and receives them in another order than they were
 * matched; then for one from MPI_PROC_NULL.
 * Rows: a call for each probe that said yes, its size, source and tag; MPI_Mrecv as a call, MPI_Imrecv as a request, with
 * what the matched message is.
 */
#include "check.h"

enum { UNIT = 30, MESSAGES = 4, ROOM = 200, GO = 20 };

static void receive(MPI_Message *message, int tag)
{
    char data[ROOM];
    MPI_Status status;
    MPI_Mrecv(data, ROOM, MPI_BYTE, message, &status);
    CHECK(status_is(&status, 1, tag, tag * UNIT) && holds(data, tag * UNIT, tag) && *message == MPI_MESSAGE_NULL);
}

static void receive_later(MPI_Message *message, int tag)
{
    char data[ROOM];
    MPI_Request request;
    MPI_Status status;
    MPI_Imrecv(data, ROOM, MPI_BYTE, message, &request);
    CHECK(*message == MPI_MESSAGE_NULL);
    MPI_Wait(&request, &status);
    CHECK(status_is(&status, 1, tag, tag * UNIT) && holds(data, tag * UNIT, tag));
}

static MPI_Message ask_until(int source, int tag, MPI_Status *status)
{
    MPI_Message message;
    int flag = 0;
    while (!flag)
        MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, status);
    return message;
}

static void receive_all(void)
{
    MPI_Message first, second;
    MPI_Status status;
    int flag;
    MPI_Improbe(1, 1, MPI_COMM_WORLD, &flag, &first, &status);
    CHECK(!flag);
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &first, &status);
    CHECK(status_is(&status, 1, 1, UNIT));
    MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &second, MPI_STATUS_IGNORE);
    receive(&second, 2);
    receive(&first, 1);
    first = ask_until(1, 3, &status);
    CHECK(status_is(&status, 1, 3, 3 * UNIT));
    second = ask_until(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_STATUS_IGNORE);
    receive_later(&second, 4);
    receive_later(&first, 3);
}

static void receive_nothing(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag;
    MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC && status_is(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0));
    MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && status_is(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0));
    MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(flag && message == MPI_MESSAGE_NO_PROC);
    MPI_Imrecv(NULL, 0, MPI_BYTE, &message, &request);
    MPI_Wait(&request, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

int main(int argc, char **argv)
{
    char data[ROOM];
    if (start(&argc, &argv, 2) == 0) {
        receive_all();
        receive_nothing();
        puts("four matched, two from nobody");
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tag = 1; tag <= MESSAGES; tag++) {
            fill(data, tag * UNIT, tag);
            MPI_Send(data, tag * UNIT, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
