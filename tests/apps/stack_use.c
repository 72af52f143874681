/*
 * Calls from coroutines: how much of a stack each takes, lines of "call bytes". Everything is called twice: the first time the dynamic
 * linker looks for functions on that stack.
 */
#include "work.h"

#include <string.h>
#include <ucontext.h>

enum { STACK = 1 << 18, UNUSED = 0xa5 };

static ucontext_t outside, inside;
static int in, out = 7;
static MPI_Request request;

static void receive(void)
{
    MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
}

static void send(void)
{
    MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
}

static void await(void)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void meet(void)
{
    MPI_Barrier(MPI_COMM_SELF);
}

static int used(void (*call)(void))
{
    static unsigned char stack[STACK];
    memset(stack, UNUSED, STACK);
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, call, 0);
    CHECK(swapcontext(&outside, &inside) == 0);
    int unused = 0;
    while (unused < STACK && stack[unused] == UNUSED)
        unused++;
    return STACK - unused;
}

int main(int argc, char **argv)
{
    static void (*const calls[])(void) = {receive, send, await, meet};
    static const char *const names[] = {"receive", "send", "wait", "barrier"};
    MPI_Init(&argc, &argv);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 4; i++)
            printf("%s %d\n", names[i], used(calls[i]));
    CHECK(in == 7);
    MPI_Finalize();
    return 0;
}
