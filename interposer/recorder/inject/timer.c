/* LAPSCOPE_INJECT=timer: tests where the application's computation is interrupted. */
#define _GNU_SOURCE
#include "injector.h"

#include "../base/accelerator.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../base/own_stack.h"
#include "../base/uncancelled.h"
#include "../record/callsite.h"
#include "../record/unwind.h"
#include "safe_point.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    STACK_BYTES = 512 << 10,
    SPARE_BYTES = 256 << 10,
    RINGS = 7,                    /* to measure an interrupt by */
    RING_NS = 50000,
    LONGEST_RING_NS = 1000000000, /* a timer of CPU time waits for the kernel's tick, and others may have the processor */
    SOON_NS = 100000,             /* where MPI could not be entered */
    CHECKS = 1000
};

static const uint64_t measure_again_ns = 10000000000u;

/* --- the handler -------------------------------------------------------------------------------------------------- */

struct interruption {
    struct injector *injector;
    uint64_t begin;               /* ticks */
    const ucontext_t *context;    /* where the thread was */
};

static uintptr_t interrupted_address(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

static int signal_number(void)
{
    return config.inject_signal ? (int)config.inject_signal : SIGURG;
}

/* Whether a signal handler of the program's is being run: it may have interrupted what MPI needs, as malloc. It is found among the
 * callers; where those are not to be found, any blocked signal may be a handler's. */
static int handles_signal(struct injector *injector, const ucontext_t *context)
{
    enum { MOST_FRAMES = 256 };
    struct callsite_cache *callers = injector->thread->callsites;
    int step = -1;
    if (callers) {
        unwind_refresh(callers->room);
        unwind_begin_at(callers->room, context, callers->stack_begin, callers->stack_end);
    }
    for (int i = 0; callers && i < MOST_FRAMES && (step = unwind_step(callers->room)) > 0; i++)
        if (callers->room->cursor.came_by_signal)
            return 1;
    uint64_t blocked;
    memcpy(&blocked, &context->uc_sigmask, sizeof blocked); /* there is no more of it than the kernel's */
    return step != 0 && blocked;
}

static void set(struct injector *injector, uint64_t ticks)
{
    if (injector->is_masked)
        return;
    uint64_t least = (uint64_t)config.inject_interval_us * 1000, ns = inject_ns(ticks);
    least = least < SOON_NS ? least : SOON_NS;
    injector->is_set = alarm_set(&injector->alarm, ns > least ? ns : least);
    if (!injector->is_set)
        inject_lose(INJECT_TIMER, "the file descriptor of its event was closed by the program");
}

/* A test whose faults, which a handler of the program's may want, do not come to lie where this interrupt's frame does: on the
 * program's alternate stack, that of the interrupt being ours. */
static uint64_t test_beside(struct injector *injector, const ucontext_t *context)
{
    const stack_t *alternate = &context->uc_stack;
    const stack_t spare = {.ss_sp = injector->spare_stack - SPARE_BYTES, .ss_size = SPARE_BYTES};
    uintptr_t begin = (uintptr_t)alternate->ss_sp;
    int is_there = !(alternate->ss_flags & SS_DISABLE) && (uintptr_t)context - begin < alternate->ss_size;
    stack_t before;
    if (!is_there || sigaltstack(&spare, &before) != 0)
        return inject_test_here(injector);
    uint64_t took = inject_test_here(injector);
    sigaltstack(&before, NULL);
    return took;
}

/* What to do where the thread was interrupted; returns the time until the next interrupt, 0: none until it calls MPI
 * again, and in `tests` what tests took. */
static uint64_t consider(struct injector *injector, const ucontext_t *context, uint64_t *tests)
{
    struct thread *t = injector->thread;
    if (!injection.is_on || injection.mode != INJECT_TIMER || recorder_state != RECORDER_ON || !inject_pending(injector))
        return 0;
    if (t->inside) /* in MPI it looks after its transfers itself; on its way there or back it takes a moment */
        return injector->in_mpi ? 0 : inject_ticks(SOON_NS);
    if (!safe_point_holds(interrupted_address(context)) || handles_signal(injector, context)) {
        injector->site->sums->deferred++;
        return inject_ticks(SOON_NS);
    }
    uint64_t over = inject_over_budget(clock_now());
    if (over)
        return over > injection.interval ? over : injection.interval;
    if (!inject_may_test(t))
        return inject_ticks(SOON_NS);
    *tests = test_beside(injector, context);
    inject_tested();
    return inject_interval(injector);
}

static void interrupted(void *argument)
{
    const struct interruption *interruption = argument;
    struct injector *injector = interruption->injector;
    uint64_t tests = 0;
    injector->is_set = 0;
    if (injector->measuring) {
        injector->measuring = 0;
        return;
    }
    uint64_t next = consider(injector, interruption->context, &tests);
    if (next)
        set(injector, next);
    uint64_t handler = clock_now() - interruption->begin - tests;
    if (handler > injection.interrupt) /* the processor was taken away meanwhile: that is nothing we cost */
        handler = injection.interrupt;
    uint64_t cost = injection.interrupt + handler;
    if (injector->site) {
        injector->site->sums->interrupts++;
        injector->site->sums->interrupt_ticks += cost;
    }
    inject_spend(cost);
}

/* The application's own SIGURG, if it has sockets that get urgent data, was ignored before and is now. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    struct interruption interruption = {.begin = clock_now(), .context = context};
    struct thread *t = current_thread;
    interruption.injector = t ? t->injector : NULL;
    if (!interruption.injector || !alarm_rang(&interruption.injector->alarm, info))
        return;
    int saved_errno = errno, cancel_state = uncancelled_begin();
    own_stack_call_at(interruption.injector->stack_top, interrupted, &interruption);
    uncancelled_end(cancel_state);
    errno = saved_errno;
}

/* --- MPI's own threads -------------------------------------------------------------------------------------------- */

static sigset_t mask_before;
static unsigned starting; /* Fortran's MPI_Init calls C's, under some MPIs */

/* What programs send themselves. While a test is made in the thread that they are meant for, they wait; but a thread of
 * MPI's own that does not block them would be given them in its stead, and run the application's handlers. So MPI's
 * threads inherit a mask. Signals that end a process or tell of children are MPI's business too, and left out. */
static void of_programs(sigset_t *set)
{
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGUSR1, SIGUSR2, SIGURG};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(set, signals[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaddset(set, number);
}

void inject_timer_before_start(void)
{
    sigset_t signals;
    if (starting++)
        return;
    safe_point_before_mpi(); /* what is loaded from here on until MPI is up, is MPI's */
    of_programs(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &mask_before);
}

void inject_timer_behind_start(void)
{
    if (--starting == 0)
        pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

/* --- the start ---------------------------------------------------------------------------------------------------- */

static struct sigaction action_before;

/* No handler of the application's runs within ours, which may be on its alternate stack; what it is sent meanwhile
 * waits. */
static int install_handler(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&action.sa_mask, faults[i]);
    return sigaction(signal_number(), &action, &action_before) == 0;
}

static int signal_is_ours(void)
{
    struct sigaction now;
    return sigaction(signal_number(), NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal;
}

static int signal_is_free(void)
{
    struct sigaction now;
    return sigaction(signal_number(), NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
           (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
}

void inject_timer_note_mpi(void)
{
    safe_point_update((uintptr_t)mpi.Get_library_version);
}

static int is_blocked(void)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 || sigismember(&blocked, signal_number());
}

/* Why nobody is interrupted here, as the process is now; NULL: points are safe. An MPI that knows device memory calls the driver
 * within a test, and an interrupt may have come while the program held that one's locks: mpich#6836. */
static const char *why_unsafe(void)
{
    if (!safe_point_update((uintptr_t)mpi.Get_library_version))
        return "no memory";
    if (accelerator_may_be_used())
        return "the driver of a GPU is in the process, and an interrupt may come while it holds a lock, which MPI wants too; "
               "LAPSCOPE_INJECT=thread and calls interrupt nobody";
    return safe_point_problem();
}

const char *inject_timer_prepare(void)
{
    if (!signal_is_free())
        return "the program uses its signal itself; LAPSCOPE_INJECT_SIGNAL names another";
    if (is_blocked())
        return "its signal is blocked; LAPSCOPE_INJECT_SIGNAL names another";
    const char *why = why_unsafe();
    if (why)
        return why;
    return install_handler() ? NULL : "that signal cannot be caught";
}

static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* How long the computation stands still for one interrupt: the median of gaps in the readings of a clock; 0: none came.
 */
static uint64_t measure_interrupt(struct injector *injector)
{
    uint64_t gaps[RINGS];
    for (int i = 0; i < RINGS; i++) {
        injector->measuring = 1;
        if (!alarm_set(&injector->alarm, RING_NS))
            return 0;
        uint64_t before = clock_now(), limit = before + inject_ticks(LONGEST_RING_NS), now = before;
        while (injector->measuring && now < limit) {
            before = now;
            now = clock_now();
        }
        if (injector->measuring)
            return injector->measuring = 0;
        now = clock_now();
        gaps[i] = now - before;
    }
    qsort(gaps, RINGS, sizeof gaps[0], by_size);
    return gaps[RINGS / 2];
}

static uint64_t measure_check_ns(void)
{
    volatile int held = 0;
    uint64_t begin = clock_nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < CHECKS; i++)
        held += safe_point_holds((uintptr_t)measure_check_ns + (uintptr_t)i);
    return (clock_nanoseconds(CLOCK_MONOTONIC) - begin) / CHECKS;
}

/* What an interrupt costs is measured by one thread for all, now and then, and with another clock at once. Returns 0 where none
 * comes. */
static int measure_now_and_then(struct injector *injector)
{
    static uint64_t next;
    uint64_t now = clock_now();
    if (LIKELY(injection.clock == injector->alarm.clock && now < __atomic_load_n(&next, __ATOMIC_RELAXED)))
        return 1;
    injection.clock = injector->alarm.clock;
    __atomic_store_n(&next, now + inject_ticks(measure_again_ns), __ATOMIC_RELAXED);
    uint64_t measured = measure_interrupt(injector);
    injection.interrupt = measured ? measured : injection.interrupt;
    injection.check = measure_check_ns();
    return measured != 0;
}

static int make_stacks(struct injector *injector)
{
    if (!injector->spare_stack)
        injector->spare_stack = own_stack_make(SPARE_BYTES);
    if (!injector->stack_top)
        injector->stack_top = own_stack_make(STACK_BYTES);
    return injector->spare_stack && injector->stack_top;
}

static const char *open_timer(struct injector *injector)
{
    if (!make_stacks(injector))
        return "no memory";
    const char *why = alarm_open(&injector->alarm, (enum alarm_clock)config.inject_clock, signal_number());
    if (why)
        return why;
    return measure_now_and_then(injector) ? NULL : "its signal does not come";
}

const char *inject_timer_open(struct injector *injector)
{
    int cancel_state = uncancelled_begin();
    const char *why = open_timer(injector);
    uncancelled_end(cancel_state);
    return why;
}

void inject_timer_close(struct injector *injector)
{
    alarm_close(&injector->alarm);
    injector->is_set = injector->is_masked = injector->measuring = 0;
}

void inject_timer_end(void)
{
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        if (threads[i]->injector)
            alarm_close(&threads[i]->injector->alarm);
    if (signal_is_ours())
        sigaction(signal_number(), &action_before, NULL);
}

/* Sets the alarm; returns why there will be none, or NULL. */
static const char *wait_for_computation(struct injector *injector)
{
    injector->is_masked = injector->is_masked || (!inject_timer_is_open(injector) && is_blocked()); /* as its thread began */
    if (injector->is_masked)
        return NULL;
    const char *why = inject_timer_is_open(injector) ? NULL : inject_timer_open(injector);
    if (why)
        return why;
    if (!signal_is_ours())
        return "the program has taken its signal for itself; LAPSCOPE_INJECT_SIGNAL names another";
    why = why_unsafe();
    if (why)
        return why;
    measure_now_and_then(injector);
    uint64_t interval = inject_interval(injector), over = inject_over_budget(clock_now());
    set(injector, over > interval ? over : interval);
    return NULL;
}

static void say_lost(const char *why)
{
    static int is_said;
    if (!__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED) && log_first_on_node())
        log_line("LAPSCOPE_INJECT=%s interrupts nobody from here on: %s", inject_mode_name((enum inject_mode)config.inject), why);
}

void inject_timer_window(struct injector *injector)
{
    if (injector->is_set || !injection.is_on)
        return;
    uint64_t begin = clock_now(), most = 2 * injection.interrupt;
    const char *why = wait_for_computation(injector);
    if (why) {
        inject_lose(INJECT_TIMER, why);
        say_lost(why);
    }
    uint64_t took = clock_now() - begin;
    inject_spend(took < most ? took : most); /* more only where the processor was taken away */
}

void inject_mask_changes(int how, const sigset_t *set)
{
    struct thread *t = current_thread;
    struct injector *injector = t ? t->injector : NULL;
    if (!injector || recorder_state != RECORDER_ON || (injector->alarm.owner && injector->alarm.owner != syscall(SYS_gettid)))
        return; /* a child of vfork has all this of its parent's */
    int is_named = sigismember(set, signal_number()) == 1;
    if (is_named && (how == SIG_BLOCK || how == SIG_SETMASK)) {
        injector->is_masked = 1;
        if (injector->is_set)
            alarm_take_back(&injector->alarm);
        injector->is_set = 0;
    } else if (injector->is_masked && how == (is_named ? SIG_UNBLOCK : SIG_SETMASK)) {
        injector->is_masked = 0;
        if (injection.mode == INJECT_TIMER && !injector->in_mpi && inject_pending(injector))
            inject_timer_window(injector);
    }
}
