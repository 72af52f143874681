/*
 * What a program may rely on around MPI calls: its errno, its signal mask and handlers, its standard output, its
 * arguments and its working directory.
 * Rows: one exchange with itself a round.
 */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 3, ERRNO = 1234, HIGHEST_SIGNAL = 64 };

static int rank;

static void handler(int signal)
{
    (void)signal;
}

/* Posts and completes a message to itself; returns how often errno was not what it had been. */
static int errno_changes(void)
{
    int in, out = 5, changes = 0;
    MPI_Request requests[2];
    errno = ERRNO;
    MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
    changes += errno != ERRNO;
    errno = ERRNO;
    MPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
    changes += errno != ERRNO;
    errno = ERRNO;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    changes += errno != ERRNO;
    return changes;
}

static int signals_blocked(void)
{
    sigset_t mask;
    int blocked = 0;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int signal = 1; signal <= HIGHEST_SIGNAL; signal++)
        blocked += sigismember(&mask, signal) == 1;
    return blocked;
}

/* SIGURG left out: LAPSCOPE_INJECT=timer handles it. */
static int handlers_set(void)
{
    int set = 0;
    for (int signal = 1; signal <= HIGHEST_SIGNAL; signal++) {
        struct sigaction action;
        set += signal != SIGURG && sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
               action.sa_handler != SIG_IGN;
    }
    return set;
}

static int standard_output_is_ours(void)
{
    return fileno(stdout) == STDOUT_FILENO && write(STDOUT_FILENO, "", 0) == 0;
}

int main(int argc, char **argv)
{
    char before[4096], after[4096];
    sigset_t blocked;
    CHECK(getcwd(before, sizeof before));
    signal(SIGUSR1, handler);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    rank = start(&argc, &argv, 2);
    if (rank == 0) {
        printf("%d arguments after MPI_Init\n", argc);
        printf("%d signals blocked, %d handled\n", signals_blocked(), handlers_set());
    }
    for (int round = 0; round < ROUNDS; round++) {
        int changes = errno_changes();
        if (rank == 0)
            printf("round %d: errno changed %d times\n", round, changes);
    }
    CHECK(standard_output_is_ours());
    CHECK(getcwd(after, sizeof after) && !strcmp(before, after));
    errno = ERRNO;
    MPI_Pcontrol(1);
    CHECK(errno == ERRNO);
    MPI_Finalize();
    if (rank == 0)
        printf("%d signals blocked, %d handled after MPI_Finalize\n", signals_blocked(), handlers_set());
    return 0;
}
