/*
 * An error handler that leaves MPI by longjmp, as programs with exceptions do: out of a blocking call, of a post and of a
 * completing call. What the program does afterwards, from deeper calls than before too, is recorded.
 * Rows: the messages that follow each jump.
 */
#include "check.h"

#include <setjmp.h>

enum { BYTES = 16, BAD = -7 };

static jmp_buf out;
static int errors;

static void jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    errors++;
    longjmp(out, 1);
}

static void exchange(MPI_Comm comm, int tag)
{
    char sent[BYTES], received[BYTES];
    int peer = 1 - comm_rank(comm);
    MPI_Request requests[2];
    fill(sent, BYTES, tag);
    MPI_Irecv(received, BYTES, MPI_BYTE, peer, tag, comm, &requests[0]);
    MPI_Isend(sent, BYTES, MPI_BYTE, peer, tag, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(holds(received, BYTES, tag));
}

/* Calls itself: the messages come from further down in the stack than the call that was left. */
__attribute__((noinline)) static void exchange_deep(MPI_Comm comm, int tag, int depth)
{
    volatile char stack[256];
    stack[0] = (char)depth;
    if (depth > 0)
        exchange_deep(comm, tag, depth - stack[0] + stack[0] - 1);
    else
        exchange(comm, tag);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char data[BYTES] = {0};
    MPI_Request request;
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    if (setjmp(out) == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 1000, 1, comm);
    exchange(comm, 1);
    if (setjmp(out) == 0)
        MPI_Isend(data, BAD, MPI_BYTE, 0, 2, comm, &request);
    exchange_deep(comm, 2, 5);
    if (setjmp(out) == 0)
        MPI_Bcast(data, BYTES, MPI_BYTE, 1000, comm);
    exchange_deep(comm, 3, 1);
    CHECK(errors == 3);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    if (rank == 0)
        puts("three jumps");
    MPI_Finalize();
    return 0;
}
