/*
 * A rank that ends where there is hardly any stack, as the second argument says: "exit" and "abort" in a signal handler on an
 * alternate stack, "thread" in a thread of 32 KiB. The code is 7.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { CODE = 7, STACK_BYTES = 12 << 10, THREAD_BYTES = 32 << 10 };

static int aborts;

static void end(int signal)
{
    (void)signal;
    if (aborts)
        MPI_Abort(MPI_COMM_WORLD, CODE);
    exit(CODE);
}

static void *end_here(void *unused)
{
    exit(CODE);
    return unused;
}

int main(int argc, char **argv)
{
    start(&argc, &argv, 1);
    aborts = strcmp(argv[1], "abort") == 0;
    puts("ends");
    fflush(stdout);
    if (strcmp(argv[1], "thread") == 0) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        CHECK(pthread_attr_setstacksize(&attributes, THREAD_BYTES) == 0);
        CHECK(pthread_create(&thread, &attributes, end_here, NULL) == 0);
        for (;;)
            pause();
    }
    size_t bytes = STACK_BYTES + (size_t)sysconf(_SC_MINSIGSTKSZ);
    stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_ONSTACK};
    CHECK(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    return 0;
}
