/*
 * A program with signals, timers and an alternate stack of its own while messages are pending: its handlers for SIGALRM, SIGPROF,
 * SIGVTALRM and SIGIO run, on that stack; what it set of every signal but SIGURG, which lapscope's documentation claims, of
 * its mask, its stack and its timers is what it finds; blocked signals stay pending.
 */
#include "traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { STEPS = 800000, SIGNALS = 65, ROUNDS = 150, MARGIN = 6000 };

static const int ours[] = {SIGALRM, SIGPROF, SIGVTALRM, SIGIO};
static volatile sig_atomic_t handled[SIGNALS], elsewhere;
static struct sigaction set[SIGNALS];
static sigset_t mask;
static stack_t stack;
static char *stack_end;
static int pipe_ends[2];
static long main_thread;

static void handle(int signal, siginfo_t *info, void *context)
{
    char here;
    int before = errno;
    (void)info;
    (void)context;
    handled[signal]++;
    if (syscall(SYS_gettid) == main_thread && !(&here >= (char *)stack.ss_sp && &here < stack_end))
        elsewhere++;
    errno = before;
}

/* One that is taken by those libraries of C that have threads, or that cannot be set. */
static int is_reserved(int signal)
{
    return signal == SIGKILL || signal == SIGSTOP || signal == 32 || signal == 33;
}

/* Small, but with room for one signal that interrupts the handling of another. */
static void use_another_stack(void)
{
    stack.ss_size = 2 * (size_t)sysconf(_SC_MINSIGSTKSZ) + MARGIN;
    stack.ss_sp = malloc(stack.ss_size);
    stack_end = (char *)stack.ss_sp + stack.ss_size;
    CHECK(stack.ss_sp && sigaltstack(&stack, NULL) == 0);
}

static void handle_ours(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaddset(&action.sa_mask, SIGUSR2);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigaddset(&action.sa_mask, ours[i]);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        CHECK(sigaction(ours[i], &action, NULL) == 0);
    CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    for (int i = 1; i < SIGNALS; i++)
        if (!is_reserved(i))
            CHECK(sigaction(i, NULL, &set[i]) == 0);
}

static void start_timers(void)
{
    struct itimerval often = {{0, 1500}, {0, 1500}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
    CHECK(setitimer(ITIMER_VIRTUAL, &often, NULL) == 0);
}

static void signal_input(void)
{
    CHECK(pipe(pipe_ends) == 0);
    CHECK(fcntl(pipe_ends[0], F_SETOWN, getpid()) == 0);
    CHECK(fcntl(pipe_ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
}

static int is_same_set(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < SIGNALS; i++)
        if (!is_reserved(i) && sigismember(a, i) != sigismember(b, i))
            return 0;
    return 1;
}

static void check_signals(void)
{
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction now;
        if (is_reserved(i) || i == SIGURG)
            continue;
        CHECK(sigaction(i, NULL, &now) == 0);
        CHECK(now.sa_handler == set[i].sa_handler && now.sa_flags == set[i].sa_flags);
        CHECK(is_same_set(&now.sa_mask, &set[i].sa_mask));
    }
}

static void check_circumstances(void)
{
    sigset_t now, pending;
    stack_t here;
    struct itimerval timer;
    check_signals();
    CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0 && is_same_set(&now, &mask));
    CHECK(sigaltstack(NULL, &here) == 0);
    CHECK(here.ss_sp == stack.ss_sp && here.ss_size == stack.ss_size && here.ss_flags == 0);
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        CHECK(getitimer(which, &timer) == 0 && timer.it_interval.tv_usec >= 1500 && timer.it_interval.tv_usec < 6000);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2) == 1 && sigismember(&pending, SIGURG) == 0);
}

static void work(int round)
{
    char byte = (char)round;
    CHECK(write(pipe_ends[1], &byte, 1) == 1);
    CHECK(arithmetic(STEPS) < 2.0);
    CHECK(read(pipe_ends[0], &byte, 1) == 1 && byte == (char)round);
    check_circumstances();
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    main_thread = syscall(SYS_gettid);
    use_another_stack();
    handle_ours();
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigaddset(&mask, SIGUSR2);
    CHECK(sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
    raise(SIGUSR2);
    signal_input();
    start_timers();
    under_traffic(argc, argv, ROUNDS, work);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){0}, NULL);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        CHECK(traffic.round < 100 || handled[ours[i]] > 0);
    CHECK(elsewhere == 0);
    if (rank == 0)
        puts("signals, timers and stack are ours");
    MPI_Finalize();
    return 0;
}
