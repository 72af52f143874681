/*
 * A program that blocks all signals while it computes, looks what is pending, and waits for its own: no other is among them.
 */
#include "traffic.h"

#include <signal.h>

enum { STEPS = 1000000, ROUNDS = 80, SIGNALS = 65 };

static void work(int round)
{
    sigset_t all, before, pending;
    int got = 0;
    CHECK(arithmetic(STEPS) < 2.0);
    sigfillset(&all);
    CHECK((round % 2 ? pthread_sigmask : sigprocmask)(SIG_SETMASK, &all, &before) == 0);
    CHECK(arithmetic(STEPS) < 2.0);
    CHECK(sigpending(&pending) == 0);
    for (int i = 1; i < SIGNALS; i++)
        CHECK(sigismember(&pending, i) != 1);
    raise(SIGUSR1);
    CHECK(sigwait(&all, &got) == 0 && got == SIGUSR1);
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(arithmetic(STEPS) < 2.0);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("nothing else was pending");
    MPI_Finalize();
    return 0;
}
