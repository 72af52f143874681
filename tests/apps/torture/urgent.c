/* A program that handles SIGURG itself, from before MPI starts: it gets those that it sends to itself, and no others. */
#include "traffic.h"

#include <signal.h>

enum { STEPS = 300000, ROUNDS = 80 };

static volatile sig_atomic_t handled;

static void count(int signal)
{
    handled += signal == SIGURG;
}

static void work(int round)
{
    CHECK(handled == round);
    CHECK(arithmetic(STEPS) < 2.0);
    raise(SIGURG);
    CHECK(arithmetic(STEPS) < 2.0);
    CHECK(handled == round + 1);
}

int main(int argc, char **argv)
{
    CHECK(signal(SIGURG, count) != SIG_ERR);
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("urgent, each as it was sent");
    MPI_Finalize();
    return 0;
}
