/*
 * Completes a known number of messages, leaves known ones pending, says so, and then rank 0 dies in the way that its
 * argument names; rank 1 waits for a message that never comes.
 * Rows: before that, ten exchanges of 16 bytes with tag 1 on both ranks, each marked as a step and as a region. Pending on
 * rank 0: three receives with tag 2, posted in post_never_matched. On rank 1: one receive with tag 3, posted in main, and the
 * MPI_Wait for it in wait_for_ever.
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 10, BYTES = 16, EXCHANGE = 1, NEVER = 2, LAST = 3 };

static MPI_Request never[3];

__attribute__((noinline)) void post_never_matched(void)
{
    static char data[3][BYTES];
    for (int i = 0; i < 3; i++)
        MPI_Irecv(data[i], BYTES, MPI_BYTE, 1, NEVER, MPI_COMM_WORLD, &never[i]);
}

__attribute__((noinline)) void wait_for_ever(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    abort(); /* keeps the call above from being a tail call */
}

static void die(const char *how)
{
    puts("about to die");
    fflush(stdout);
    if (!strcmp(how, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "exit"))
        exit(8);
    if (!strcmp(how, "_exit"))
        _exit(8);
    if (!strcmp(how, "_Exit"))
        _Exit(8);
    if (!strcmp(how, "quick_exit"))
        quick_exit(8);
    raise(!strcmp(how, "kill")   ? SIGKILL
          : !strcmp(how, "term") ? SIGTERM
                                 : SIGSEGV);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Pcontrol(2);
        MPI_Pcontrol(1, "exchange");
        fill(out, BYTES, round);
        MPI_Irecv(in, BYTES, MPI_BYTE, peer, EXCHANGE, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, BYTES, MPI_BYTE, peer, EXCHANGE, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, round));
        MPI_Pcontrol(-1, "exchange");
    }
    MPI_Pcontrol(1, "until death");
    if (rank == 0) {
        post_never_matched();
        MPI_Barrier(MPI_COMM_WORLD);
        sleep(1); /* until the other rank is inside its MPI_Wait */
        die(argc > 1 ? argv[1] : "exit");
    }
    MPI_Irecv(in, BYTES, MPI_BYTE, peer, LAST, MPI_COMM_WORLD, &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    wait_for_ever(&requests[0]);
    return 0;
}
