/*
 * Processes that are looked at from outside, and are odd. Not an MPI program.
 *
 *   odd deep      as deep in itself as its stack allows, asleep
 *   odd traced    on a processor, with a tracer that is not lapscope
 *   odd asleep    asleep in three functions, to be stripped
 *
 * Each prints the number of the process to be looked at.
 */
#include <signal.h>
#include <stdio.h>
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
    enum { FRAMES = 20000 };
    alarm(120); /* a test that is interrupted leaves it behind */
    const char *kind = argc > 1 ? argv[1] : "";
    if (!strcmp(kind, "deep"))
        return deep(FRAMES) + never;
    if (!strcmp(kind, "traced"))
        return traced();
    return calls() + never;
}
