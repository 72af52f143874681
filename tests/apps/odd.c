/*
 * Processes that are looked at from outside, and are odd. Not an MPI program.
 *
 *   odd deep      deep in itself, asleep
 *   odd endless   deeper than anybody looks
 *   odd signal    asleep in a handler of a signal, on a stack of its own
 *   odd traced    on a processor, with a tracer that is not lapscope
 *   odd asleep    asleep in three functions, to be stripped
 *
 * Each prints the number of the process to be looked at.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noipa))

static volatile int never;

static void here(void)
{
    printf("%ld\n", (long)getpid());
    fflush(stdout);
}

SITE int deep(int left)
{
    if (!left) {
        here();
        pause();
    }
    return left ? deep(left - 1) + never : 0;
}

SITE int sleeps(void)
{
    here();
    return pause() + never;
}

SITE int calls(void)
{
    return sleeps() + never;
}

SITE void on_signal(int signal)
{
    (void)signal;
    sleeps();
}

SITE int is_interrupted(void)
{
    enum { BYTES = 1 << 16 };
    stack_t stack = {.ss_sp = malloc(BYTES), .ss_size = BYTES};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
        return 1;
    return raise(SIGUSR1) + never;
}

static int traced(void)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        here();
        while (!never)
            ;
    }
    return pause();
}

int main(int argc, char **argv)
{
    enum { FRAMES = 20000, TOO_MANY = 80000 };
    alarm(120); /* a test that is interrupted leaves it behind */
    const char *kind = argc > 1 ? argv[1] : "";
    if (!strcmp(kind, "deep"))
        return deep(FRAMES) + never;
    if (!strcmp(kind, "endless"))
        return deep(TOO_MANY) + never;
    if (!strcmp(kind, "signal"))
        return is_interrupted() + never;
    if (!strcmp(kind, "traced"))
        return traced();
    return calls() + never;
}
