/*
 * A rank hangs when none of its MPI calls has ended for a while; tests that found nothing are no progress. The thread looks
 * at the counters that the spool shows to everybody, a few times in that while, and costs the application's threads nothing.
 *
 * A job that hangs, hangs on all its ranks, and one line is enough: whoever makes the file MARK in the run directory says it,
 * and takes the file away when its calls go on. Ranks that are the first on their node come first, so that of a job of
 * ten thousand ranks a few hundred ask the file system at once.
 *
 * "Only rank 0" speaks would be silent where rank 0 waits for nobody. Where nothing can be written, the first rank of
 * each node speaks. The thread blocks all signals, asks no MPI, holds no lock while it writes, and ends where all other
 * threads have ended by pthread_exit, so that it keeps no process alive.
 */
#define _GNU_SOURCE
#include "watchdog.h"

#include "../base/call.h"
#include "../base/clock.h"
#include "../base/log.h"
#include "../base/process.h"
#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MARK ".watchdog"

enum { LOOKS = 4 /* within the limit */, STACK_BYTES = 256 << 10, PATH_BYTES = 4096 };
static const uint64_t LONGEST_SLEEP_NS = 10000000000; /* so that it notices soon when it is the last thread */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static int is_over, has_mark; /* under the lock */
static int is_first;          /* on its node; asked once, as the application may change its environment at any time */
static struct watchdog_post post;
static char mark[PATH_BYTES];

/* --- what is seen ------------------------------------------------------------------------------------------------- */

struct sight {
    uint64_t ended, tests;   /* calls so far, tests that found nothing left out; these */
};

static struct sight look(void)
{
    struct sight sight = {0, 0};
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++) {
        const struct spool_thread_state *state = threads[i]->state;
        uint64_t tests = __atomic_load_n(&state->unsuccessful_tests, __ATOMIC_RELAXED);
        sight.ended += __atomic_load_n(&state->calls, __ATOMIC_RELAXED) - tests;
        sight.tests += tests;
    }
    return sight;
}

/* The thread that is longest inside of a call, or NULL; `inside` is how many are. */
static const struct spool_thread_state *longest_inside(unsigned *inside)
{
    const struct spool_thread_state *longest = NULL;
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    *inside = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct spool_thread_state *state = threads[i]->state;
        if (!__atomic_load_n(&state->current_operation, __ATOMIC_ACQUIRE) || state->current_call >= CALL_COUNT)
            continue;
        ++*inside;
        if (!longest || state->current_begin < longest->current_begin)
            longest = state;
    }
    return longest;
}

/* Whether there is anything to watch: not behind MPI_Pcontrol(0), nor when the last session of MPI is over. */
static int is_on(void)
{
    unsigned inside;
    return recorder_state == RECORDER_ON && (!spool_header()->finalize_begin || longest_inside(&inside));
}

static double seconds_since(uint64_t ticks)
{
    return (double)(clock_now() - ticks) / spool_header()->nominal_ticks_per_ns / 1e9;
}

static void describe(char *text, size_t bytes, uint64_t tests)
{
    unsigned inside;
    const struct spool_thread_state *state = longest_inside(&inside);
    if (state && inside > 1)
        snprintf(text, bytes, "inside %s for %.1f s, and %u more of its threads inside MPI", call_names[state->current_call],
                 seconds_since(state->current_begin), inside - 1);
    else if (state)
        snprintf(text, bytes, "inside %s for %.1f s", call_names[state->current_call], seconds_since(state->current_begin));
    else if (tests)
        snprintf(text, bytes, "it tests, and nothing is complete");
    else
        snprintf(text, bytes, "outside MPI");
}

/* --- who says it -------------------------------------------------------------------------------------------------- */

/* As a shell takes it for one word. */
static void quote(char *out, size_t room, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,=@%";
    if (!path[strspn(path, plain)]) {
        snprintf(out, room, "%s", path);
        return;
    }
    size_t used = 0;
    out[used++] = '\'';
    for (; *path && used + 6 < room; path++)
        used += (size_t)snprintf(out + used, room - used, *path == '\'' ? "'\\''" : "%c", *path);
    snprintf(out + used, room - used, "'");
}

/* Whether this rank is to say that it hangs: nobody else has, of those that still do. */
static int is_speaker(void)
{
    int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno != EEXIST && is_first; /* nothing can be written there: a line a node */
    close(fd);
    pthread_mutex_lock(&lock);
    int is_late = is_over;
    has_mark = !is_late;
    pthread_mutex_unlock(&lock);
    if (is_late)
        unlink(mark);
    return !is_late;
}

static void say(const char *what, double still_s)
{
    char run[PATH_BYTES + 256];
    quote(run, sizeof run, post.run);
    log_line("rank %d (%s, pid %d) hangs: no MPI call of it has ended for %.1f s; %s. What the ranks wait for says: lapscope hang %s",
             post.rank, post.host, (int)getpid(), still_s, what, run);
}

/* Under the lock. */
static void take_mark_away(void)
{
    if (has_mark)
        unlink(mark);
    has_mark = 0;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

struct watch {
    struct sight last;
    uint64_t still_since, tests_then; /* CLOCK_MONOTONIC */
    uint64_t next;                    /* how long it has to be still before it is said, if nobody else has */
    int is_said;
};

static void begin_anew(struct watch *watch, uint64_t now)
{
    watch->last = look();
    watch->tests_then = watch->last.tests;
    watch->still_since = now;
    watch->next = post.limit_ns + (is_first ? 0 : post.limit_ns / 2);
    watch->is_said = 0;
    take_mark_away();
}

/* One look, under the lock; returns whether it is time to say that the rank hangs, and then `what` it does. */
static int is_time(struct watch *watch, uint64_t now, char *what, size_t bytes)
{
    if (!is_on() || look().ended != watch->last.ended) {
        begin_anew(watch, now);
        return 0;
    }
    if (watch->is_said || now - watch->still_since < watch->next)
        return 0;
    watch->next *= 2; /* another may have said it, and then go on */
    describe(what, bytes, look().tests - watch->tests_then);
    return 1;
}

/* Sleeps, under the lock. */
static void sleep_until(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (!is_over && pthread_cond_timedwait(&wake, &lock, &time) == 0)
        ;
}

static void *run(void *argument)
{
    (void)argument;
    prctl(PR_SET_NAME, "lapscope");
    thread_step_aside();
    uint64_t pause = post.limit_ns / LOOKS < LONGEST_SLEEP_NS ? post.limit_ns / LOOKS : LONGEST_SLEEP_NS;
    struct watch watch = {0};
    pthread_mutex_lock(&lock);
    begin_anew(&watch, clock_nanoseconds(CLOCK_MONOTONIC));
    while (!is_over) {
        char what[256];
        sleep_until(clock_nanoseconds(CLOCK_MONOTONIC) + pause);
        uint64_t now = clock_nanoseconds(CLOCK_MONOTONIC);
        if (is_over || process_has_only_helpers(1)) /* it would keep the process alive */
            break;
        if (!is_time(&watch, now, what, sizeof what))
            continue;
        pthread_mutex_unlock(&lock); /* writing may take as long as it likes */
        if (is_speaker()) {
            watch.is_said = 1;
            say(what, (double)(now - watch.still_since) / 1e9);
        }
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int make_thread(int has_stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (has_stack)
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

int watchdog_start(const struct watchdog_post *wanted)
{
    sigset_t all, before;
    pthread_condattr_t attributes;
    post = *wanted;
    is_first = log_first_on_node();
    snprintf(mark, sizeof mark, "%.4000s/" MARK, post.run);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
    is_over = 0;
    sigfillset(&all); /* signals that the application is sent are not for this thread */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = make_thread(1);
    if (error == EINVAL) /* thread-local variables of the program need more */
        error = make_thread(0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void watchdog_end(void)
{
    if (!post.run)
        return;
    pthread_mutex_lock(&lock);
    is_over = 1;
    take_mark_away();
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}
