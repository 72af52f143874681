/*
 * Large requests that nobody waits for, among others: receives that are cancelled and then waited for or freed, sends that are freed
 * at once and whose messages come none the less.
 */
#include "traffic.h"

enum { BYTES = 250007, NEVER = 60, FREED = 61, STEPS = 300000, ROUNDS = 80 };

static char room[BYTES], out[BYTES], in[BYTES];

static void cancel(int round)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(room, BYTES, MPI_BYTE, traffic.peer, NEVER, MPI_COMM_WORLD, &request);
    CHECK(arithmetic(STEPS) < 2.0);
    MPI_Cancel(&request);
    CHECK(arithmetic(STEPS) < 2.0);
    if (round % 2) {
        MPI_Request_free(&request);
    } else {
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled);
    }
    CHECK(request == MPI_REQUEST_NULL);
}

/* The next message in the other direction says that this one has come. */
static void send_and_forget(int round)
{
    MPI_Request request;
    fill(out, BYTES, round + 7 * traffic.rank);
    MPI_Isend(out, BYTES, MPI_BYTE, traffic.peer, FREED, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && arithmetic(STEPS) < 2.0);
    MPI_Irecv(in, BYTES, MPI_BYTE, traffic.peer, FREED, MPI_COMM_WORLD, &request);
    CHECK(arithmetic(STEPS) < 2.0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(in, BYTES, round + 7 * traffic.peer));
    MPI_Sendrecv(NULL, 0, MPI_BYTE, traffic.peer, FREED, NULL, 0, MPI_BYTE, traffic.peer, FREED, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void work(int round)
{
    computing = 0;
    cancel(round);
    send_and_forget(round);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("cancelled, freed, forgotten");
    MPI_Finalize();
    return 0;
}
