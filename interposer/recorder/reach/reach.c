#define _GNU_SOURCE
#include "reach.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../record/entry.h"
#include "../record/request_memory.h"
#include "memory.h"
#include "turn.h"
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A request's buffers, for as long as its entry stands for it. */
struct request_buffers {
    uint64_t hash;                 /* see intern.h */
    const struct spool_live *live;
    struct known_buffer sends, receives;
};

/* A thread's own. */
struct reach {
    struct watcher watcher;
    struct intern_table requests;  /* struct request_buffers */
    uint64_t left_out[LEFT_OUT_REASONS];
    pid_t tid;
};

/* The process's. */
static struct {
    int is_on;
    const char *problem;
} state;

/* What is done for reach alone, from its begin to its end: the program is held up meanwhile. */
struct work {
    struct watcher *watcher;
    uint64_t began;
    int saved_errno;
};

static struct work begin_work(struct reach *reach)
{
    return (struct work){&reach->watcher, clock_now(), errno};
}

static void end_work(const struct work *work)
{
    watcher_spend(work->watcher, clock_now() - work->began);
    errno = work->saved_errno;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static struct request_buffers *buffers_of(struct reach *reach, const struct spool_live *live, int make)
{
    uint64_t hash = intern_hash(&live, sizeof live);
    void **slot = intern_find(&reach->requests, hash, &live, sizeof live);
    if (slot && !*slot && make) {
        struct request_buffers *made = arena_alloc(sizeof *made);
        if (!made)
            return NULL;
        made->hash = hash;
        made->live = live;
        *slot = made;
        reach->requests.count++;
    }
    return slot ? *slot : NULL;
}

static int has_peer(const struct operation *operation)
{
    return operation->key.peer != SPOOL_PROC_NULL;
}

/* MPI was given buffers: what was watched of them is over. */
static void were_given(struct reach *reach, const struct known_buffer *sends, const struct known_buffer *receives,
                       const struct operation *operation, uint64_t begin, uint64_t mpi_ticks)
{
    if (!reach->watcher.active || !has_peer(operation))
        return;
    if (sends->is_given && !sends->not)
        watcher_given(&reach->watcher, SPOOL_WATCH_SEND, sends, operation, begin, mpi_ticks);
    if (receives->is_given && !receives->not)
        watcher_given(&reach->watcher, SPOOL_WATCH_RECEIVE, receives, operation, begin, mpi_ticks);
}

static void request_posted(struct reach *reach, const struct request_buffers *buffers, const struct spool_live *live)
{
    const struct operation *operation = (const struct operation *)(uintptr_t)live->owner;
    were_given(reach, &buffers->sends, &buffers->receives, operation, live->post_begin,
               live->mpi_ticks_at_post - live->post_ticks);
}

static void keep(struct thread *t, struct spool_live *live, const struct given_buffer *sends,
                 const struct given_buffer *receives, int is_posted)
{
    struct work work = begin_work(t->reach);
    struct request_buffers *buffers = live && state.is_on ? buffers_of(t->reach, live, 1) : NULL;
    if (buffers) {
        buffers->sends = buffer_known(sends);
        buffers->receives = buffer_known(receives);
        if (is_posted)
            request_posted(t->reach, buffers, live);
    }
    end_work(&work);
}

void reach_posted(struct thread *t, struct spool_live *live, struct given_buffer sends, struct given_buffer receives)
{
    request_memory_posted(t, live, sends.address, receives.address);
    if (t->reach)
        keep(t, live, &sends, &receives, 1);
}

void reach_made(struct thread *t, struct spool_live *live, struct given_buffer sends, struct given_buffer receives)
{
    request_memory_made(t, live, sends.address, receives.address);
    if (t->reach)
        keep(t, live, &sends, &receives, 0);
}

/* Of requests that are posted anew the buffers are not known yet: reach_posted() has them. */
static void request_started(struct reach *reach, struct spool_live *live)
{
    struct work work = begin_work(reach);
    const struct request_buffers *buffers = live->flags & SPOOL_LIVE_PERSISTENT ? buffers_of(reach, live, 0) : NULL;
    if (buffers && reach->watcher.active)
        request_posted(reach, buffers, live);
    end_work(&work);
}

/* --- buffers that MPI lets go of ---------------------------------------------------------------------------------- */

static enum left_out examine(const struct known_buffer *given, uint64_t came, struct buffer *buffer)
{
    if (given->why != LEFT_OUT_NOT)
        return given->why;
    *buffer = given->buffer;
    if (came < given->bytes) { /* what lies behind it was not received */
        if (buffer->sparse)
            return LEFT_OUT_DATATYPE;
        buffer->bytes = buffer->element_bytes = came;
    }
    enum memory_kind kind = memory_of(buffer->begin, buffer->bytes);
    return kind == MEMORY_OWN ? LEFT_OUT_NOT : kind == MEMORY_SHARED ? LEFT_OUT_SHARED : LEFT_OUT_MEMORY;
}

/* `came`: bytes of it that hold data. */
static void let_go_of(struct reach *reach, enum spool_watch_side side, const struct known_buffer *given, uint64_t came,
                      const struct operation *operation, uint64_t begin, uint64_t end)
{
    struct turn *turn = NULL;
    struct subject subject = {.side = side, .operation = operation, .begin = begin, .given = given->address};
    if (!given->is_given || !has_peer(operation))
        return;
    enum left_out why = given->not;
    if (!why && (came == 0 || came < (uint64_t)config.reach_min_bytes))
        why = LEFT_OUT_SMALL;
    if (!why)
        why = watcher_draws(&reach->watcher, operation, side, &turn);
    if (!why)
        why = examine(given, came, &subject.buffer);
    if (why)
        reach->left_out[why]++;
    else
        watcher_begin(&reach->watcher, &subject, turn, end);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* MPI has filled a buffer; `bytes` came, where that is told. */
static void let_go_of_received(struct reach *reach, const struct known_buffer *receives, uint64_t bytes,
                               const struct operation *operation, uint64_t begin, uint64_t end)
{
    uint64_t room = receives->bytes, came = operation->key.kind == SPOOL_RECV ? least(bytes, room) : room;
    if (receives->is_given && !receives->not && reach->watcher.active)
        watcher_filled(&reach->watcher, receives, end);
    let_go_of(reach, SPOOL_WATCH_RECEIVE, receives, came, operation, begin, end);
}

/* A request is over; `bytes` came, where it received. */
static void request_ended(struct reach *reach, const struct span *span, struct spool_live *live, int ended, uint64_t bytes)
{
    struct work work = begin_work(reach);
    int is_own = live->thread == span->thread->number;
    const struct request_buffers *buffers = is_own ? buffers_of(reach, live, 0) : NULL;
    const struct operation *operation = (const struct operation *)(uintptr_t)live->owner;
    reach->left_out[LEFT_OUT_THREAD] += !is_own;
    if (buffers && state.is_on && (ended == SPOOL_WAITED || ended == SPOOL_TESTED)) {
        let_go_of_received(reach, &buffers->receives, bytes, operation, live->post_begin, span->end);
        let_go_of(reach, SPOOL_WATCH_SEND, &buffers->sends, buffers->sends.bytes, operation, live->post_begin, span->end);
    }
    end_work(&work);
}

/* What a blocking call did, as its row has it; NULL when it could not be kept. */
static const struct operation *operation_of_call(const struct span *span, const struct operation *last)
{
    return last && last->key.call == (uint16_t)span->call && last->key.path == span->site->path ? last : NULL;
}

void reach_called(const struct span *span, struct given_buffer given_to_send, struct given_buffer given_to_fill)
{
    struct reach *reach = span->thread->reach;
    if (!reach)
        return;
    struct work work = begin_work(reach);
    uint64_t mpi_before = span->thread->state->mpi_ticks - (span->end - span->begin);
    const struct operation *operation = operation_of_call(span, span->site->last_operation);
    const struct operation *receiving = operation_of_call(span, span->site->last_receive);
    if (!operation || !state.is_on) {
        end_work(&work);
        return;
    }
    struct known_buffer sends = buffer_known(&given_to_send), receives = buffer_known(&given_to_fill);
    if (operation->key.kind != SPOOL_SEND || !receives.is_given || !receiving)
        receiving = operation;
    were_given(reach, &sends, &receives, operation, span->begin, mpi_before);
    let_go_of_received(reach, &receives, receiving->key.actual_bytes, receiving, span->begin, span->end);
    let_go_of(reach, SPOOL_WATCH_SEND, &sends, sends.bytes, operation, span->begin, span->end);
    end_work(&work);
}

static void enter_mpi(struct reach *reach)
{
    struct work work = begin_work(reach);
    watcher_enter(&reach->watcher, work.began);
    end_work(&work);
}

static void leave_mpi(struct reach *reach)
{
    struct work work = begin_work(reach);
    watcher_leave(&reach->watcher);
    end_work(&work);
    reach->watcher.own_at_edge = reach->watcher.own;
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

static volatile uint64_t trial_word __attribute__((aligned(8)));

/* The first ones find nothing in the caches; a program's hits come one behind the other. */
static uint64_t lower_quartile(uint64_t *values, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            uint64_t value = values[j];
            values[j] = values[j - 1];
            values[j - 1] = value;
        }
    return values[count / 4];
}

/* Some kernels grant watchpoints that never hit (emulators, some virtual machines). Leaves in watch_cost what one costs. */
static int does_hit(struct watchpoint *point)
{
    enum { TRIALS = 17 };
    uint64_t set[TRIALS], hit[TRIALS], before[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        struct watchpoint_hit found;
        uint64_t begin = clock_now();
        if (!watchpoint_set(point, WATCH_WRITES, (const void *)&trial_word, 8, 1))
            return 0;
        uint64_t begin_ns = clock_nanoseconds(CLOCK_MONOTONIC), is_set = clock_now();
        trial_word++;
        uint64_t behind = clock_now();
        if (!watchpoint_next(point, &found))
            return 0;
        watchpoint_clear(point);
        set[i] = is_set - begin + clock_now() - behind;
        hit[i] = behind - is_set;
        before[i] = (uint64_t)((double)(found.ns - begin_ns) * spool_header()->nominal_ticks_per_ns);
    }
    watch_cost.set = lower_quartile(set, TRIALS);
    watch_cost.hit = lower_quartile(hit, TRIALS);
    watch_cost.before = least(lower_quartile(before, TRIALS), watch_cost.hit);
    return 1;
}

static const char *open_first(struct reach *reach)
{
    int error = watcher_open(&reach->watcher);
    if (error)
        return watchpoint_problem(error);
    if (does_hit(&reach->watcher.watches[0].point))
        return NULL;
    watcher_close(&reach->watcher);
    return "watchpoints are granted here and never hit (an emulator or virtual machine)";
}

static struct reach *create(struct thread *t)
{
    struct reach *reach = arena_alloc(sizeof *reach);
    if (!reach)
        return NULL;
    reach->tid = (pid_t)syscall(SYS_gettid);
    watcher_init(&reach->watcher, t);
    return reach;
}

static struct reach *first_call(struct thread *t)
{
    struct reach *reach = state.is_on ? create(t) : NULL;
    return reach && watcher_open(&reach->watcher) == 0 ? reach : NULL;
}

static void end_watches(struct reach *reach)
{
    reach->left_out[LEFT_OUT_UNSENT] += watcher_end(&reach->watcher);
    watcher_close(&reach->watcher);
}

/* For reach_stop() it is inside MPI meanwhile: either sees the other. */
static void thread_ended(struct reach *reach)
{
    struct thread *t = reach->watcher.thread;
    __atomic_store_n(&t->inside, UINTPTR_MAX, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&state.is_on, __ATOMIC_SEQ_CST))
        end_watches(reach);
    leave(t);
}

/* Where no watchpoint is to be had any more, its buffers are left out as those that find none free. */
static void taken_over(struct reach *reach)
{
    reach->tid = (pid_t)syscall(SYS_gettid);
    if (state.is_on)
        watcher_open(&reach->watcher);
}

static uint64_t ns_of(uint64_t ticks)
{
    return (uint64_t)((double)ticks / spool_header()->nominal_ticks_per_ns);
}

static int is_watched(pid_t tid)
{
    for (unsigned i = 0; i < thread_count; i++)
        if (threads[i]->reach && threads[i]->reach->tid == tid)
            return 1;
    return 0;
}

/* Nanoseconds that threads have run on which nothing was watched (proc(5), /proc/PID/task/TID/schedstat); -1: not known. */
static int64_t other_threads_ns(void)
{
    char path[300], text[64];
    int64_t total = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return -1;
    for (struct dirent *task; (task = readdir(tasks));) {
        long long ran = 0;
        if (task->d_name[0] == '.' || is_watched((pid_t)atol(task->d_name)))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
        text[length > 0 ? length : 0] = '\0';
        if (length > 0 && sscanf(text, "%lld", &ran) == 1)
            total += ran;
        if (fd >= 0)
            close(fd);
    }
    closedir(tasks);
    return total;
}

/* As schema/spool.h has it. */
static void write_facts(struct thread *t, int is_over)
{
    char text[512], key[64], hit[24] = "", set[24] = "", other[24] = "";
    int64_t other_ns = is_over ? other_threads_ns() : -1;
    if (watch_cost.hit) {
        snprintf(hit, sizeof hit, "%llu", (unsigned long long)ns_of(watch_cost.hit));
        snprintf(set, sizeof set, "%llu", (unsigned long long)ns_of(watch_cost.set));
    }
    if (other_ns >= 0)
        snprintf(other, sizeof other, "%lld", (long long)other_ns);
    snprintf(text, sizeof text, "%s\t%u\t%s\t%s\t%llu\t%s", state.problem ? state.problem : "",
             t->reach ? t->reach->watcher.points : 0, hit, set,
             (unsigned long long)ns_of(__atomic_load_n(&watch_cost.spent, __ATOMIC_RELAXED)), other);
    spool_define_meta(&t->stream, "watcher", text);
    for (int reason = 1; reason < LEFT_OUT_REASONS; reason++) {
        uint64_t buffers = 0;
        for (unsigned i = 0; i < thread_count; i++)
            buffers += threads[i]->reach ? threads[i]->reach->left_out[reason] : 0;
        if (!buffers)
            continue;
        snprintf(key, sizeof key, "left_out.%s", left_out_word((enum left_out)reason));
        snprintf(text, sizeof text, "%llu", (unsigned long long)buffers);
        spool_define_meta(&t->stream, key, text);
    }
}

static void forget_in_child(void)
{
    for (unsigned i = 0; i < thread_count; i++)
        if (threads[i]->reach)
            watcher_forget(&threads[i]->reach->watcher);
    state.is_on = 0;
}

void reach_start(struct thread *t)
{
    if (!config.reach || config.record != CONFIG_RECORD_ON)
        return;
    int saved_errno = errno;
    watch_cost.began = clock_now();
    struct reach *reach = create(t);
    state.problem = reach ? open_first(reach) : "no memory";
    if (state.problem) {
        if (log_first_on_node())
            log_line("LAPSCOPE_REACH watches nothing: %s", state.problem);
        write_facts(t, 0);
        errno = saved_errno;
        return;
    }
    state.is_on = 1;
    t->reach = reach;
    t->gives_buffers = 1;
    t->ends_slowly = 1;
    stamps_are_plain = 0;
    reach_hooks = (struct reach_hooks){first_call, thread_ended,    taken_over,   enter_mpi,
                                       leave_mpi,  request_started, request_ended};
    pthread_atfork(NULL, NULL, forget_in_child);
    watch_cost.spent = clock_now() - watch_cost.began;
    write_facts(t, 0);
    errno = saved_errno;
}

/* A thread that is inside MPI may be reading its watches: it keeps them, disabled by the process's end. */
static void close_all(const struct thread *self)
{
    for (unsigned i = 0; i < thread_count; i++) {
        struct thread *t = threads[i];
        if (!t->reach || (t != self && __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE)))
            continue;
        end_watches(t->reach);
    }
}

void reach_stop(struct thread *t)
{
    if (!state.is_on)
        return;
    int saved_errno = errno;
    __atomic_store_n(&state.is_on, 0, __ATOMIC_SEQ_CST);
    close_all(t);
    write_facts(t, 1);
    errno = saved_errno;
}

/* Only this thread's stream may be written to. */
void reach_abandon(void)
{
    if (state.is_on && current_thread && current_thread->reach)
        reach_stop(current_thread);
    state.is_on = 0;
}
