/*
 * Where a stack has more to it than the program above MPI: each rank stands elsewhere, for ever. Six ranks.
 *
 *   0  in a function that MPI calls to combine values, on a processor
 *   1  in a function that MPI calls on an error, asleep
 *   2  deep inside itself, in a receive of whatever comes
 *   3  asking by MPI_Iprobe again and again
 *   4  in a handler of a signal, on a stack of its own, which interrupted a receive
 *   5  in MPI_Ssend, which this program has itself and which passes it on
 */
#include "hang.h"

#include <sys/time.h>

enum { DEEP = 4000 };
static volatile int never;

/* Which compilers can neither leave out nor end early. */
SITE void work(void)
{
    while (!never)
        computes(0.01);
}

static void combine(void *in, void *result, int *count, MPI_Datatype *type)
{
    (void)in, (void)result, (void)count, (void)type;
    work();
}

SITE void combines(void)
{
    int in = 1, result = 2;
    MPI_Op operation;
    MPI_Op_create(combine, 1, &operation);
    MPI_Reduce_local(&in, &result, 1, MPI_INT, operation);
    CHECK(never);
}

static void on_error(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    sleeps(60.0);
}

SITE void fails(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    send_small(size + 5, TAG, MPI_COMM_WORLD);
    CHECK(never);
}

__attribute__((noinline, noipa)) int descends(int left)
{
    if (left)
        return descends(left - 1) + never;
    MPI_Recv(from_others, SMALL, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return never;
}

SITE void asks(void)
{
    for (int flag = 0; !flag;)
        MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void on_alarm(int signal)
{
    (void)signal;
    work();
}

SITE void is_interrupted(void)
{
    static char own[1 << 16];
    static const stack_t stack = {.ss_sp = own, .ss_size = sizeof own};
    static const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    static const struct itimerval soon = {.it_value.tv_usec = 100000};
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    receive_small(0, OTHER_TAG, MPI_COMM_WORLD);
}

/* As libraries that watch calls do. */
int MPI_Ssend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    int error = PMPI_Ssend(buffer, count, type, to, tag, comm);
    return error + never;
}

SITE void is_watched(void)
{
    MPI_Ssend(to_others, SMALL, MPI_BYTE, 0, OTHER_TAG, MPI_COMM_WORLD);
}

SITE void each_elsewhere(void)
{
    here();
    switch (rank) {
    case 0: combines(); break;
    case 1: fails(); break;
    case 2: descends(DEEP); break;
    case 3: asks(); break;
    case 4: is_interrupted(); break;
    default: is_watched();
    }
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(each_elsewhere)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
