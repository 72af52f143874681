/* LAPSCOPE_INJECT=thread: tests from a thread beside the application's. */
#define _GNU_SOURCE
#include "injector.h"

#include "../base/clock.h"
#include "../base/mpi_api.h"
#include "../record/entry.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { LINGER = 16 }; /* intervals that it goes on looking for a window before it lies down: waking it costs the application */

static pthread_t helper;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int lies_down, is_over;   /* under the lock; lies_down is read without */
static int is_started;

static uint64_t cpu_ns(void)
{
    return clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Of the threads with open windows one that computes: those inside MPI look after their transfers themselves. */
static struct injector *who_computes(int *windows)
{
    struct injector *found = NULL;
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    *windows = 0;
    for (unsigned i = 0; injection.mode == INJECT_THREAD && i < count; i++) {
        struct injector *injector = threads[i]->injector;
        if (!injector || !inject_pending(injector))
            continue;
        *windows = 1;
        if (!__atomic_load_n(&threads[i]->inside, __ATOMIC_RELAXED))
            found = injector;
    }
    return found;
}

static void sleep_ticks(uint64_t ticks)
{
    uint64_t ns = inject_ns(ticks);
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Until a window opens; returns 0 at the end. */
static int lie_down(void)
{
    pthread_mutex_lock(&lock);
    __atomic_store_n(&lies_down, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    int windows;
    who_computes(&windows); /* one that was opened before we said so wakes nobody */
    while (!windows && lies_down && !is_over)
        pthread_cond_wait(&wake, &lock);
    lies_down = 0;
    int goes_on = !is_over;
    pthread_mutex_unlock(&lock);
    return goes_on;
}

/* One test, if there is somebody to make it for; returns how long to sleep. */
static uint64_t test_for_somebody(uint64_t *tests, int *windows)
{
    struct injector *injector = who_computes(windows);
    if (!injector)
        return injection.interval;
    uint64_t over = inject_over_budget(clock_now());
    if (over)
        return over > injection.interval ? over : injection.interval;
    if (inject_may_test(NULL)) {
        *tests = inject_test(injector).used;
        inject_tested();
    }
    return inject_interval(injector);
}

static void *run(void *argument)
{
    (void)argument;
    prctl(PR_SET_NAME, "lapscope");
    prctl(PR_SET_TIMERSLACK, 1); /* ns */
    thread_step_aside();
    uint64_t interval = injection.interval, cpu = cpu_ns();
    for (unsigned quiet = 0; __atomic_load_n(&injection.is_on, __ATOMIC_ACQUIRE);) {
        if (quiet > LINGER && !lie_down())
            break;
        sleep_ticks(interval);
        uint64_t tests = 0;
        int windows;
        interval = test_for_somebody(&tests, &windows);
        quiet = windows ? 0 : quiet + 1;
        uint64_t now = cpu_ns(), used = inject_ticks(now - cpu);
        cpu = now;
        inject_spend(used > tests ? used - tests : 0);
    }
    return NULL;
}

const char *inject_helper_prepare(void)
{
    int level = MPI_THREAD_SINGLE;
    sigset_t all, before;
    mpi.Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return "MPI does not grant MPI_THREAD_MULTIPLE; LAPSCOPE_INJECT=timer does without";
    /* Signals that the application is sent are not for this thread. Faults are: MPI moves data within a test, and the program may have
     * a barrier before its pages, which its handler lifts. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    injection.is_on = 1; /* or it ends at once */
    int error = pthread_create(&helper, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    is_started = !error;
    return error ? "no thread to be had" : NULL;
}

void inject_helper_window(void)
{
    if (LIKELY(!__atomic_load_n(&lies_down, __ATOMIC_SEQ_CST)))
        return;
    pthread_mutex_lock(&lock);
    lies_down = 0;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void inject_helper_end(void)
{
    if (!is_started)
        return;
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(helper, NULL);
}
