#define _GNU_SOURCE
#include "profile.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../record/callsite.h"
#include "../record/entry.h"
#include "../record/operation.h"
#include "../record/path.h"
#include "../record/tally.h"
#include "posts.h"
#include "sampler.h"
#include "tasks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOST_COUNTS = 8192,          /* of a thread: half a megabyte of its spool */
    MOST_TASKS = 1024,
    NEW_TASKS_NS = 50000000,     /* between looks for threads */
    SHORT_NS = 100000,           /* so long a computation, or call, has hardly a sample of other threads */
    SELDOM_NS = 10000000,        /* theirs are looked for at least so often */
    MOST_REQUESTS = 1024,        /* that are looked at for one sample */
    MOST_ENTRIES = 16384
};

/* So many samples were of an instruction while the same sites had requests under way. */
struct count {
    uint64_t hash;               /* see intern.h */
    struct count_key {
        struct posts posts;
        uint64_t address, thread; /* enum spool_sampled */
    } key;
    struct spool_sample *place;  /* NULL: it is no computation, or there is no room */
    int is_left_out;
};

/* A thread's own. */
struct profile {
    struct thread *thread;
    struct sampler *own;
    struct intern_table counts;
    uint64_t edge, others_read;  /* ticks: since when it is in MPI, or out of it; when samples of others were last read */
    int is_reading;
};

/* The process's. */
static struct {
    int is_on;
    const char *problem;
    pthread_mutex_t lock;        /* of what follows, and of which samplers are open */
    struct sampler *others[MOST_SAMPLERS]; /* of threads that made no MPI call */
    unsigned other_count, most_others;
    pid_t not_sampled[MOST_TASKS]; /* until MPI is up those before it, then MPI's own */
    unsigned not_sampled_count;
    unsigned tasks;
    uint64_t next_look;          /* ticks, as those that follow: NEW_TASKS_NS, SHORT_NS, SELDOM_NS */
    uint64_t new_tasks, shortest, seldom;
    uint64_t others_lost, left_out;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t ticks_of(uint64_t ns)
{
    return (uint64_t)((double)ns * spool_header()->nominal_ticks_per_ns);
}

static pid_t own_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* What MPI does outside of recorded calls, and what we do ourselves, is not the program's computation. */
static int computes(uintptr_t address)
{
    return !callsite_is_in_mpi(address) && !callsite_is_in_loader(address);
}

static void find_place(struct profile *profile, struct count *count)
{
    uintptr_t behind = (uintptr_t)count->key.address + 1; /* paths are of return addresses */
    uint32_t path = profile->counts.count < MOST_COUNTS ? path_define(profile->thread, &behind, 1) : 0;
    struct spool_sample *place = path ? (struct spool_sample *)tally_new_place(profile->thread) : NULL;
    count->is_left_out = !place;
    if (!place)
        return;
    place->thread = (uint8_t)count->key.thread;
    place->reason = SPOOL_TALLY_SAMPLE;
    place->path = path;
    memcpy(place->post_paths, count->key.posts.paths, sizeof place->post_paths);
    memcpy(place->post_calls_plus_1, count->key.posts.calls_plus_1, sizeof place->post_calls_plus_1);
    __atomic_store_n(&place->is_used, 1, __ATOMIC_RELEASE);
    count->place = place;
}

/* NULL when there is no room. */
static struct count *count_of(struct profile *profile, const struct count_key *key)
{
    uint64_t hash = intern_hash(key, sizeof *key);
    void **slot = intern_find(&profile->counts, hash, key, sizeof *key);
    if (!slot || *slot)
        return slot ? *slot : NULL;
    struct count *count = profile->counts.count < 2 * MOST_COUNTS ? arena_alloc(sizeof *count) : NULL;
    if (!count)
        return NULL;
    count->hash = hash;
    count->key = *key;
    if (computes((uintptr_t)key->address))
        find_place(profile, count);
    profile->counts.count++;
    return *slot = count;
}

static void add(struct profile *profile, const struct posts *posts, uintptr_t address, enum spool_sampled thread)
{
    struct count_key key = {.posts = *posts, .address = address, .thread = thread};
    struct count *count = count_of(profile, &key);
    if (count && count->place)
        count->place->count++;
    else if (!count || count->is_left_out)
        __atomic_fetch_add(&state.left_out, 1, __ATOMIC_RELAXED);
}

/* Takes what a sampler has; `posts` is NULL when it does not count. */
static void take(struct profile *profile, struct sampler *sampler, const struct posts *posts, enum spool_sampled thread)
{
    uintptr_t address;
    while (sampler_next(sampler, &address))
        if (posts)
            add(profile, posts, address, thread);
}

/* The site of an entry's request, if it has one: another thread may just be ending it, and what was read is then nothing. */
static void add_post(struct posts *posts, const struct spool_live *live, uint32_t id)
{
    const struct operation *operation = (const struct operation *)(uintptr_t)__atomic_load_n(&live->owner, __ATOMIC_RELAXED);
    if (!operation || operation->id != id)
        return;
    uint32_t path = operation->key.path;
    uint16_t call = operation->key.call;
    if (__atomic_load_n(&live->operation, __ATOMIC_ACQUIRE) == id)
        posts_add(posts, path, call);
}

/* The sites of a thread's pending requests: of so many as are worth the time. The index does not have them all, see request.h. */
static void collect_posts(struct thread *t, struct posts *posts)
{
    *posts = (struct posts){.paths = {0}};
    unsigned requests = 0, looked = 0;
    for (const struct live_entries *entries = t->live_entries; entries; entries = entries->before)
        for (size_t at = 0; at < entries->count && requests < MOST_REQUESTS && looked < MOST_ENTRIES; at++, looked++) {
            uint32_t id = __atomic_load_n(&entries->first[at].operation, __ATOMIC_ACQUIRE);
            if (id) {
                add_post(posts, &entries->first[at], id);
                requests++;
            }
        }
}

/* --- other threads ------------------------------------------------------------------------------------------------ */

static int is_listed(const pid_t *tids, unsigned count, pid_t tid)
{
    for (unsigned i = 0; i < count; i++)
        if (tids[i] == tid)
            return 1;
    return 0;
}

static int has_profile(pid_t tid)
{
    for (unsigned i = 0; i < thread_count; i++)
        if (threads[i]->profile && threads[i]->profile->own && threads[i]->profile->own->tid == tid)
            return 1;
    return 0;
}

static void forget_other(unsigned at)
{
    state.others_lost += state.others[at]->lost;
    sampler_close(state.others[at]);
    state.others[at] = state.others[--state.other_count];
}

static int is_other(pid_t tid)
{
    for (unsigned i = 0; i < state.other_count; i++)
        if (state.others[i]->tid == tid)
            return 1;
    return 0;
}

/* Threads that have come are sampled from now on, and those that have gone no more. */
static void look_for_tasks(void)
{
    pid_t tids[MOST_TASKS];
    unsigned count = tasks_list(tids, MOST_TASKS);
    for (unsigned i = state.other_count; i-- > 0;)
        if (!is_listed(tids, count, state.others[i]->tid))
            forget_other(i);
    for (unsigned i = 0; i < count && state.other_count < MOST_SAMPLERS; i++) {
        if (is_listed(state.not_sampled, state.not_sampled_count, tids[i]) || has_profile(tids[i]) || is_other(tids[i]))
            continue;
        struct sampler *sampler = sampler_open(tids[i]);
        if (sampler)
            state.others[state.other_count++] = sampler;
    }
    state.most_others = state.other_count > state.most_others ? state.other_count : state.most_others;
}

/* Whose turn it is to read the others' samples: one thread of those that call MPI. */
static void take_others(struct profile *profile, const struct posts *posts, uint64_t now)
{
    if (pthread_mutex_trylock(&state.lock) != 0)
        return;
    for (unsigned i = 0; i < state.other_count; i++)
        take(profile, state.others[i], posts, SPOOL_SAMPLED_OTHER);
    if (now >= state.next_look) {
        unsigned tasks = tasks_count();
        if (tasks != state.tasks && !sampler_uses_signal())
            look_for_tasks();
        state.tasks = tasks;
        state.next_look = now + state.new_tasks;
    }
    pthread_mutex_unlock(&state.lock);
}

/* --- around calls ------------------------------------------------------------------------------------------------- */

/* What was found since the last time, all of it outside of MPI or within. */
static void read_samples(struct profile *profile, int counts)
{
    int saved_errno = errno, has_own = profile->own && sampler_has_more(profile->own);
    uint64_t now = clock_now();
    int is_long = now - profile->edge > state.shortest, is_due = counts && now - profile->others_read > state.seldom;
    int has_others = (is_long || is_due) && (state.other_count || now >= state.next_look);
    profile->edge = now;
    if (!has_own && !has_others)
        return;
    struct posts posts;
    profile->is_reading = 1;
    if (counts)
        collect_posts(profile->thread, &posts);
    if (has_own)
        take(profile, profile->own, counts ? &posts : NULL, SPOOL_SAMPLED_CALLER);
    if (has_others) {
        take_others(profile, counts ? &posts : NULL, now);
        profile->others_read = now;
    }
    profile->is_reading = 0;
    errno = saved_errno;
}

static void enter_mpi(struct profile *profile)
{
    if (state.is_on)
        read_samples(profile, 1);
}

static void leave_mpi(struct profile *profile)
{
    if (state.is_on)
        read_samples(profile, 0);
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

/* It made no MPI call until now, so that it may be among the others. */
static void open_own(struct profile *profile)
{
    pid_t tid = own_tid();
    pthread_mutex_lock(&state.lock);
    for (unsigned i = state.other_count; i-- > 0;)
        if (state.others[i]->tid == tid)
            forget_other(i);
    profile->own = sampler_open(tid);
    pthread_mutex_unlock(&state.lock);
}

static struct profile *create(struct thread *t)
{
    struct profile *profile = arena_alloc(sizeof *profile);
    if (!profile)
        return NULL;
    profile->thread = t;
    profile->edge = profile->others_read = clock_now();
    open_own(profile);
    return profile;
}

static struct profile *first_call(struct thread *t)
{
    return state.is_on ? create(t) : NULL;
}

static void close_own(struct profile *profile)
{
    pthread_mutex_lock(&state.lock);
    if (profile->own) {
        state.others_lost += profile->own->lost;
        sampler_close(profile->own);
    }
    profile->own = NULL;
    pthread_mutex_unlock(&state.lock);
}

static void taken_over(struct profile *profile)
{
    if (state.is_on)
        open_own(profile);
}

/* As schema/spool.h has it. */
static void write_fact(struct thread *t)
{
    char text[512];
    snprintf(text, sizeof text, "%s\t%d\t%lld\t%u\t%llu\t%llu", state.problem ? state.problem : "", sampler_uses_signal(),
             (long long)config.sample, state.most_others, (unsigned long long)state.others_lost,
             (unsigned long long)__atomic_load_n(&state.left_out, __ATOMIC_RELAXED));
    spool_define_meta(&t->stream, "sampler", text);
}

void profile_before_start(void)
{
    if (config.sample)
        state.not_sampled_count = tasks_list(state.not_sampled, MOST_TASKS);
}

/* Those that have come while MPI started are MPI's, and the recorder's own. */
static void know_own_of_mpi(void)
{
    pid_t tids[MOST_TASKS];
    unsigned count = tasks_list(tids, MOST_TASKS), own = 0;
    for (unsigned i = 0; i < count; i++)
        if (!is_listed(state.not_sampled, state.not_sampled_count, tids[i]))
            tids[own++] = tids[i];
    memcpy(state.not_sampled, tids, own * sizeof tids[0]);
    state.not_sampled_count = own;
}

static void forget_in_child(void)
{
    state.is_on = 0;
    sampler_forget_all();
}

void profile_start(struct thread *t)
{
    if (!config.sample || config.record == CONFIG_RECORD_OFF)
        return;
    int saved_errno = errno;
    know_own_of_mpi();
    state.new_tasks = ticks_of(NEW_TASKS_NS);
    state.shortest = ticks_of(SHORT_NS);
    state.seldom = ticks_of(SELDOM_NS);
    state.problem = sampler_prepare((unsigned)config.sample);
    if (!state.problem) {
        t->profile = create(t);
        state.problem = t->profile ? NULL : "no memory";
    }
    if (state.problem && log_first_on_node())
        log_line("LAPSCOPE_SAMPLE takes no samples: %s", state.problem);
    if (!state.problem) {
        profile_hooks = (struct profile_hooks){first_call, close_own, taken_over, enter_mpi, leave_mpi};
        pthread_atfork(NULL, NULL, forget_in_child);
        stamps_are_plain = 0;
        state.is_on = 1;
    }
    write_fact(t);
    errno = saved_errno;
}

/* A thread that is inside MPI may be reading its own: it keeps them. */
static void close_all(const struct thread *self)
{
    pthread_mutex_lock(&state.lock);
    while (state.other_count)
        forget_other(state.other_count - 1);
    pthread_mutex_unlock(&state.lock);
    for (unsigned i = 0; i < thread_count; i++)
        if (threads[i]->profile && (threads[i] == self || !__atomic_load_n(&threads[i]->inside, __ATOMIC_ACQUIRE)))
            close_own(threads[i]->profile);
    sampler_end();
}

void profile_stop(struct thread *t)
{
    if (!state.is_on)
        return;
    int saved_errno = errno;
    if (t->profile)
        read_samples(t->profile, 1);
    __atomic_store_n(&state.is_on, 0, __ATOMIC_SEQ_CST);
    close_all(t);
    write_fact(t);
    errno = saved_errno;
}

/* It may be within a call, or while samples are read, that the process ends. */
void profile_abandon(void)
{
    struct thread *t = current_thread;
    if (!state.is_on || !t || !t->profile || t->profile->is_reading || t->inside)
        state.is_on = 0;
    else
        profile_stop(t);
}
