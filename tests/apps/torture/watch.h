/*
 * Tells whether a signal was handled on a thread in the middle of its computation. The kernel saves what a handler interrupts
 * below the thread's stack pointer, more than a kilobyte, beyond the 128 bytes there that functions use (the red zone): words
 * written there before and changed behind it were overwritten by that, as computing that calls no function does not go there.
 */
#ifndef WATCH_H
#define WATCH_H

#include "traffic.h"

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the system call below and the size of the red zone are those of x86-64"
#endif

enum { FARTHEST = 2048, NEAREST = 768, MARK = 0x5a5a5a5a };

/* A system call without a function call: sends this thread a signal. */
static inline __attribute__((always_inline)) void disturb(int process, int thread, int signal)
{
    long result = SYS_tgkill;
    __asm__ volatile("syscall" : "+a"(result) : "D"(process), "S"(thread), "d"(signal) : "rcx", "r11", "memory");
}

/* Computes; returns whether a signal was handled on this thread meanwhile. `signal`: one to be sent to it, or 0. */
static __attribute__((noinline)) int is_disturbed(int steps, int signal, int process, int thread)
{
    volatile uint32_t *low = (volatile uint32_t *)((char *)__builtin_frame_address(0) - FARTHEST);
    int words = (FARTHEST - NEAREST) / 4, changed = 0;
    double x = 0.3;
    for (int i = 0; i < words; i++)
        low[i] = MARK;
    for (int i = 0; i < steps; i++)
        x = 3.7 * x * (1.0 - x);
    if (signal)
        disturb(process, thread, signal);
    for (int i = 0; i < words; i++)
        changed += low[i] != MARK;
    return changed > 0 || x > 2.0;
}

static void do_nothing(int signal)
{
    (void)signal;
}

/* That it would be noticed. */
static inline void check_watch(void)
{
    struct sigaction ours = {.sa_handler = do_nothing}, before;
    CHECK(!is_disturbed(1000, 0, 0, 0));
    CHECK(sigaction(SIGUSR2, &ours, &before) == 0);
    CHECK(is_disturbed(1000, SIGUSR2, getpid(), (int)syscall(SYS_gettid)));
    CHECK(sigaction(SIGUSR2, &before, NULL) == 0);
}

/* Starts MPI where only this one of several threads calls it. */
static inline void start_funneled(int *argc, char ***argv)
{
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    CHECK(provided >= MPI_THREAD_FUNNELED && comm_size(MPI_COMM_WORLD) == 2);
    check_watch();
}

#endif
