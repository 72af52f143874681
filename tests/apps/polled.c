/*
 * Requests whose wait is not where their data are needed.
 *
 *   polled tests       the receiver tests now and then while it computes, and goes on computing behind the test that completes
 *   polled elsewhere   the sender waits for an answer in another call, during which its message moves
 */
#include "work.h"

enum { BYTES = 4 << 20, ROUNDS = 20, REHEARSALS = 10, TOKEN = 7, SLICE_NS = 200000, REST_NS = 10000000 };

static char *buffer;

SITE void receive_testing(int round)
{
    MPI_Request request;
    int done = 0;
    MPI_Irecv(buffer, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    while (!done) {
        compute(SLICE_NS);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    compute(REST_NS);
    CHECK(is_message(buffer, BYTES, round));
}

SITE void send_waiting(int round)
{
    MPI_Request request;
    memset(buffer, value_of(round), BYTES);
    MPI_Isend(buffer, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

SITE void send_and_be_answered(int round)
{
    MPI_Request request;
    memset(buffer, value_of(round), BYTES);
    MPI_Isend(buffer, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    compute(REST_NS);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

SITE void receive_and_answer(int round)
{
    compute(REST_NS);
    MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(is_message(buffer, BYTES, round));
    compute(REST_NS);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int64_t took[REHEARSALS];
    int sends = start(&argc, &argv, 2) == 0;
    int elsewhere = argc > 1 && strcmp(argv[1], "elsewhere") == 0;
    void (*const parts[])(int) = {receive_testing, send_waiting, receive_and_answer, send_and_be_answered};
    buffer = make_buffer(BYTES);
    calibrate_work();
    rehearse(buffer, BYTES, REHEARSALS, took);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        parts[2 * elsewhere + sends](round);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
