#define _GNU_SOURCE
#include "entry.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../base/uncancelled.h"
#include "callsite.h"
#include "cells.h"
#include "frame_tree.h"
#include "meter.h"
#include "request.h"
#include "request_memory.h"
#include "sample.h"
#include "tally.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Most of what communicates is the thread that called MPI_Init. */
enum { FIRST_STREAM_CHUNK = 256 << 10, FIRST_CHUNK_OF_OTHERS = 64 << 10, AT_ONCE_NS = 10000 };

static struct thread beyond_limit = {.inside = UINTPTR_MAX}; /* enter() refuses it: such threads are not recorded */

static int tell_tid(struct thread *t)
{
    struct spool_thread self = {(uint16_t)t->number, (int64_t)syscall(SYS_gettid)};
    return spool_define(&t->stream, SPOOL_THREAD, &self, sizeof self, NULL, 0, NULL, 0);
}

static int open_spool(struct thread *t)
{
    t->stream = (struct spool_stream){.next_bytes = t->number ? FIRST_CHUNK_OF_OTHERS : FIRST_STREAM_CHUNK,
                                      .thread = t->number,
                                      .full = config.record != CONFIG_RECORD_ON};
    if (config.record == CONFIG_RECORD_JOB) {
        t->cells = frame_tree_is_open() || frame_tree_open() ? cells_create(t->number) : NULL;
        t->at_once_ticks = clock_ticks(AT_ONCE_NS, spool_header()->nominal_ticks_per_ns);
    }
    return spool_stream_grow(&t->stream, 0, 1) && request_init(t) && tally_init(t) && tell_tid(t) &&
           (t->cells || config.record != CONFIG_RECORD_JOB);
}

/* --- threads that have ended ---------------------------------------------------------------------------------------
 *
 * A program may start a thread for each task: what the recorder kept for one that has ended serves the next, chunks of
 * the spool and number alike. What of it is the operating system's own for a thread (alarms, watchpoints, counters) ends
 * with the thread, and the next begins it anew. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *ended;

/* A destructor of the thread's own data. MPI calls in later ones find that the thread has no record, and take one. The first
 * thread's serves no other, as the end of the run is written to it; nor does any in a child of fork, or after MPI_Finalize. */
static void thread_ended(void *value)
{
    struct thread *t = value;
    if (t->meter)
        meter_thread_ended(t->meter);
    if (t->number == 0 || recorder_state == RECORDER_OFF)
        return;
    current_thread = NULL;
    t->inside = 0; /* pthread_exit may have left a wrapper */
    t->state->current_operation = 0;
    if (t->injector)
        thread_hooks.thread_ended(t->injector);
    if (t->reach)
        reach_hooks.thread_ended(t->reach);
    if (t->profile)
        profile_hooks.thread_ended(t->profile);
    pthread_mutex_lock(&lock);
    sample_thread_ended(t);
    t->next_ended = ended;
    ended = t;
    pthread_mutex_unlock(&lock);
}

static void be_told_of_end(struct thread *t)
{
    static pthread_key_t key;
    static int has_key;
    has_key = has_key || pthread_key_create(&key, thread_ended) == 0;
    if (has_key)
        pthread_setspecific(key, t);
}

/* NULL when none has ended, or nothing can be written of the change. */
static struct thread *take_over(void)
{
    struct thread *t = ended;
    if (!t || !tell_tid(t))
        return NULL;
    ended = t->next_ended;
    callsite_cache_take_over(t->callsites);
    if (t->meter)
        meter_take_over(t->meter);
    if (t->reach)
        reach_hooks.taken_over(t->reach);
    if (t->profile)
        profile_hooks.taken_over(t->profile);
    return t;
}

static struct thread *new_thread(void)
{
    struct thread *t = thread_count < MAX_THREADS ? arena_alloc(sizeof *t) : NULL;
    if (!t)
        return NULL;
    t->number = thread_count;
    t->callsites = callsite_cache_create();
    t->meter = meter_create();
    t->injector = thread_hooks.first_call ? thread_hooks.first_call(t) : NULL;
    t->reach = reach_hooks.first_call ? reach_hooks.first_call(t) : NULL;
    t->profile = profile_hooks.first_call ? profile_hooks.first_call(t) : NULL;
    t->gives_buffers = t->reach != NULL;
    t->ends_slowly = t->meter || t->reach ? ENDS_WITH_MORE : 0;
    t->record_room = SPOOL_RECORD_ROOM + (t->meter ? METER_ROOM : 0);
    if (!t->callsites || !open_spool(t))
        return NULL;
    request_memory_look(t);
    threads[thread_count] = t;
    __atomic_store_n(&thread_count, thread_count + 1, __ATOMIC_RELEASE);
    return t;
}

struct thread *thread_first_call(void)
{
    int saved_errno = errno, cancel_state = uncancelled_begin();
    pthread_mutex_lock(&lock);
    struct thread *t = take_over();
    t = t ? t : new_thread();
    if (t)
        be_told_of_end(t);
    pthread_mutex_unlock(&lock);
    if (!t && spool_header())
        __atomic_fetch_add(&spool_header()->lost_records, 1, __ATOMIC_RELAXED);
    current_thread = t ? t : &beyond_limit;
    uncancelled_end(cancel_state);
    errno = saved_errno;
    return t;
}

int thread_is_nested(struct thread *t, uintptr_t return_address)
{
    if (t == &beyond_limit)
        return 1;
    int saved_errno = errno;
    int nested = callsite_passes(t->inside);
    errno = saved_errno;
    if (nested) {
        unsigned at = (unsigned)((return_address ^ t->inside_return) * 0x9e3779b97f4a7c15u >> 60);
        t->nestings[at % NESTINGS] = (struct nesting){return_address, t->inside_return};
    }
    return nested;
}

struct thread *thread_step_aside(void)
{
    struct thread *t = current_thread;
    current_thread = &beyond_limit;
    return t;
}

uint64_t thread_stamp_begin(struct thread *t)
{
    if (t->profile)
        profile_hooks.enter(t->profile);
    if (t->reach)
        reach_hooks.enter(t->reach);
    if (t->injector)
        thread_hooks.enter(t->injector);
    if (t->meter)
        meter_enter(t->meter);
    return clock_now();
}

uint64_t thread_stamp_end(struct thread *t)
{
    uint64_t now = clock_now();
    if (t->meter)
        meter_leave(t->meter);
    if (t->injector)
        thread_hooks.leave(t->injector);
    if (t->reach)
        reach_hooks.leave(t->reach);
    if (t->profile)
        profile_hooks.leave(t->profile);
    return now;
}
