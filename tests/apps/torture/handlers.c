/*
 * A program that is often in a signal handler of its own, which has interrupted malloc or free and takes a while: a test made there
 * would wait for ever for what it has interrupted. Some of its handlers let their own signal through.
 */
#include "traffic.h"

#include <signal.h>
#include <sys/time.h>

enum { PIECES = 3000, LARGEST_PIECE = 3000, STEPS = 150000, ROUNDS = 60 };

static volatile sig_atomic_t handled;
static volatile double result;

static void handle(int signal)
{
    (void)signal;
    result = arithmetic(STEPS);
    handled++;
}

static void handle_by(int flags)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART | flags};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
}

static void work(int round)
{
    static char *piece[PIECES];
    struct itimerval often = {{0, 900}, {0, 900}}, never = {{0, 0}, {0, 0}};
    handle_by(round % 2 ? SA_NODEFER : 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < PIECES; i++) {
        piece[i] = malloc((size_t)(1 + i % LARGEST_PIECE));
        CHECK(piece[i]);
        piece[i][0] = (char)i;
    }
    for (int i = 0; i < PIECES; i++) {
        CHECK(piece[i][0] == (char)i);
        free(piece[i]);
    }
    CHECK(arithmetic(10 * STEPS) < 2.0);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    CHECK(traffic.round < 10 || handled > 0);
    if (rank == 0)
        puts("handlers end");
    MPI_Finalize();
    return 0;
}
