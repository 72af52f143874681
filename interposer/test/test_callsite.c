/*
 * Call paths: random walks through functions with frames of every kind, thousands of them, must get the same id exactly
 * when they took the same way. What would deceive a careless cache: equal stack pointers reached on different ways,
 * frames of dynamic size, and old return addresses left in them.
 */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"

#include "../recorder/record/callsite.h"
#include "../recorder/record/frame_tree.h"
#include "../recorder/record/path.h"
#include "../recorder/record/tally.h"

#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEEPEST = 9, KINDS = 7, WALKS = 60000, THREADS = 3 };

struct walk {
    struct thread *t;
    unsigned depth;
    unsigned char kind[DEEPEST];
    unsigned short bytes[DEEPEST]; /* of frames of dynamic size */
    uint32_t path;
};

static __thread volatile unsigned char sink;

/* Where a wrapper stands: it must keep a frame pointer, as the recorder's own do. */
static __attribute__((noinline, optimize("no-omit-frame-pointer"))) void wrapper(struct walk *walk)
{
    walk->path = callsite_of(walk->t, CALLER())->path;
    sink++;
}

static __attribute__((noinline)) void go_on(struct walk *walk, unsigned at);

static __attribute__((noinline)) void plain(struct walk *walk, unsigned at)
{
    go_on(walk, at + 1);
    sink++; /* no tail call: the frame must stay */
}

static __attribute__((noinline)) void large_frame(struct walk *walk, unsigned at)
{
    volatile unsigned char room[200];
    room[at] = (unsigned char)at;
    go_on(walk, at + 1);
    sink = room[at];
}

static __attribute__((noinline)) void dynamic_frame(struct walk *walk, unsigned at)
{
    volatile unsigned char *room = alloca(16 + walk->bytes[at]);
    room[0] = (unsigned char)at; /* what stood here before, return addresses among it, is left as it is */
    go_on(walk, at + 1);
    sink = room[0];
}

static __attribute__((noinline)) void variable_array(struct walk *walk, unsigned at)
{
    volatile unsigned char room[1 + walk->bytes[at]];
    room[0] = (unsigned char)at;
    go_on(walk, at + 1);
    sink = room[0];
}

/* Its caller's stack pointer is kept in a word of its own. */
static __attribute__((noinline)) void aligned_and_dynamic(struct walk *walk, unsigned at)
{
    _Alignas(64) volatile unsigned char aligned[64];
    volatile unsigned char *room = alloca(1 + walk->bytes[at] % (64 * (at + 1)));
    aligned[at] = room[0] = (unsigned char)at;
    go_on(walk, at + 1);
    sink = aligned[at] - room[0];
}

static __attribute__((noinline, optimize("no-omit-frame-pointer"))) void with_frame_pointer(struct walk *walk, unsigned at)
{
    go_on(walk, at + 1);
    sink++;
}

/* The same callee from two places of one function. */
static __attribute__((noinline)) void two_places(struct walk *walk, unsigned at)
{
    if (walk->bytes[at] & 1) {
        go_on(walk, at + 1);
        sink = 1;
    } else {
        go_on(walk, at + 1);
        sink = 2;
    }
    sink++;
}

static __attribute__((noinline)) void go_on(struct walk *walk, unsigned at)
{
    static void (*const step[KINDS])(struct walk *, unsigned) = {plain,          large_frame,        dynamic_frame,
                                                                 variable_array, aligned_and_dynamic, with_frame_pointer, two_places};
    if (at == walk->depth)
        wrapper(walk);
    else
        step[walk->kind[at]](walk, at);
    sink++;
}

/* What tells one way from another: the functions, and the place within two_places. */
static uint64_t way(const struct walk *walk)
{
    uint64_t digits = 1;
    for (unsigned at = 0; at < walk->depth; at++)
        digits = digits * (KINDS + 1) + walk->kind[at] + (walk->kind[at] == KINDS - 1 && walk->bytes[at] & 1);
    return digits;
}

/* Ids by way, and ways by id: each is one. */
struct seen {
    uint64_t way;
    uint32_t path;
};

static int by_way(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->way != y->way ? (x->way > y->way) - (x->way < y->way) : (x->path > y->path) - (x->path < y->path);
}

static int by_path(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->path != y->path ? (x->path > y->path) - (x->path < y->path) : (x->way > y->way) - (x->way < y->way);
}

static unsigned long disagreements(struct seen *seen)
{
    unsigned long wrong = 0;
    qsort(seen, WALKS, sizeof *seen, by_way);
    for (int i = 1; i < WALKS; i++)
        wrong += seen[i].way == seen[i - 1].way && seen[i].path != seen[i - 1].path;
    qsort(seen, WALKS, sizeof *seen, by_path);
    for (int i = 1; i < WALKS; i++)
        wrong += seen[i].path == seen[i - 1].path && seen[i].way != seen[i - 1].way;
    return wrong;
}

struct result {
    unsigned long wrong, nameless;
    uint64_t misses;
    size_t site_bytes;
    unsigned seed;
};

static void *wander(void *argument)
{
    struct result *result = argument;
    struct walk walk = {.t = bring_up()};
    struct seen *seen = malloc(WALKS * sizeof *seen);
    for (int i = 0; i < WALKS; i++) {
        /* few enough ways that most are met often, by frames of sizes that vary */
        walk.depth = 1 + (unsigned)rand_r(&result->seed) % (DEEPEST - 5);
        for (unsigned at = 0; at < walk.depth; at++) {
            walk.kind[at] = (unsigned char)(rand_r(&result->seed) % KINDS);
            walk.bytes[at] = (unsigned short)(rand_r(&result->seed) % 4 * 32 + rand_r(&result->seed) % 2);
        }
        go_on(&walk, 0);
        seen[i] = (struct seen){way(&walk), walk.path};
        result->nameless += walk.path == 0;
    }
    result->wrong = disagreements(seen);
    result->misses = walk.t->callsites->misses;
    result->site_bytes = walk.t->callsites->site_bytes;
    free(seen);
    return NULL;
}

static void test_walks(void)
{
    struct result result = {.seed = 1};
    wander(&result);
    CHECK_EQUAL(result.wrong, 0);
    CHECK_EQUAL(result.nameless, 0);
    CHECK(result.misses > 0 && result.misses < WALKS); /* it was a cache that was tested */
}

/* Each thread has a stack and a cache of its own. */
static void test_threads(void)
{
    pthread_t thread[THREADS];
    struct result result[THREADS] = {{.seed = 10}, {.seed = 20}, {.seed = 30}};
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, wander, &result[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        CHECK_EQUAL(result[i].wrong, 0);
        CHECK_EQUAL(result[i].nameless, 0);
    }
}

/* The very same call again costs no unwinding. */
static void test_hit(void)
{
    struct walk walk = {.t = bring_up(), .depth = 3, .kind = {0, 2, 4}, .bytes = {0, 32, 0}};
    uint64_t misses = 0;
    uint32_t path = 0, others = 0;
    for (int i = 0; i < 1000; i++) {
        go_on(&walk, 0);
        if (i == 0) {
            path = walk.path;
            misses = walk.t->callsites->misses;
        }
        others += walk.path != path;
    }
    CHECK_EQUAL(others, 0);
    CHECK_EQUAL(walk.t->callsites->misses, misses);
}

/* LAPSCOPE_RECORD=job: paths that have gone come back by the same name, and call sites take no more memory. */
static int job(void)
{
    enum { MOST_SITE_BYTES = 160 << 10 };
    struct result result = {.seed = 40};
    setenv("LAPSCOPE_RECORD", "job", 1);
    wander(&result);
    CHECK_EQUAL(result.wrong, 0);
    CHECK_EQUAL(result.nameless, 0);
    CHECK(frame_tree_sweeps() > 0);
    CHECK(result.site_bytes > MOST_SITE_BYTES / 2 && result.site_bytes <= MOST_SITE_BYTES);
    tear_down();
    return check_summary() | fflush(stdout);
}

/* As if another thread took out what no cell has, right when a path was found: linked in the place of path_intern. */
static int is_swept_at_once;
uint32_t __real_path_intern(struct thread *t, struct path_found *found);
uint32_t __wrap_path_intern(struct thread *t, struct path_found *found);

uint32_t __wrap_path_intern(struct thread *t, struct path_found *found)
{
    uint32_t path = __real_path_intern(t, found);
    if (is_swept_at_once)
        frame_tree_sweep();
    return path;
}

static int job_of_threads(void)
{
    setenv("LAPSCOPE_RECORD", "job", 1);
    struct walk walk = {.t = bring_up(), .depth = 3, .kind = {0, 2, 4}, .bytes = {0, 32, 0}};
    for (volatile int turn = 0; turn < 4; turn++) { /* from one place */
        uint32_t before = walk.path;
        is_swept_at_once = turn == 0;
        if (turn == 2) { /* nothing is missed then but a cell */
            frame_tree_sweep();
            CHECK(tally_find(walk.t, CALL_MPI_Send, walk.path, 8, SPOOL_TALLY_SUMMARY) != NULL);
        }
        go_on(&walk, 0);
        CHECK(turn == 0 || walk.path == before);
        CHECK_EQUAL(path_is_there(walk.path), turn > 0);
    }
    tear_down();
    return check_summary() | fflush(stdout);
}

/* Walks along the ways of these numbers, each another. */
static void walk_along(struct walk *walk, unsigned from, unsigned to)
{
    walk->depth = 4;
    for (unsigned number = from; number < to; number++) {
        for (unsigned at = 0, digits = number; at < walk->depth; at++, digits /= KINDS)
            walk->kind[at] = (unsigned char)(digits % KINDS);
        go_on(walk, 0);
    }
}

/* Calls that are under way when paths go have their sites until they end. */
static int job_of_nested_calls(void)
{
    enum { OUTER = 200, INNER = 40, SITES = CALLSITE_BUCKETS * CALLSITE_WAYS };
    static struct callsite *site[SITES];
    static uint32_t path[SITES];
    unsigned count = 0, changed = 0;
    setenv("LAPSCOPE_RECORD", "job", 1);
    struct walk walk = {.t = bring_up()};
    walk_along(&walk, 0, OUTER);
    for (int at = 0; at < SITES; at++) {
        site[count] = walk.t->callsites->bucket[at / CALLSITE_WAYS][at % CALLSITE_WAYS];
        if (site[count] && site[count]->path) {
            path[count] = site[count]->path;
            count++;
        }
    }
    frame_tree_sweep();
    walk_along(&walk, OUTER, OUTER + INNER);
    for (unsigned i = 0; i < count; i++)
        changed += site[i]->path != path[i];
    CHECK(count > 64 && changed == 0);
    tear_down();
    return check_summary() | fflush(stdout);
}

static void in_a_process(int (*test)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (!pid)
        _exit(test());
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
}

static void test_job(void)
{
    in_a_process(job);
    in_a_process(job_of_threads);
    in_a_process(job_of_nested_calls);
}

int main(void)
{
    test_job();
    test_walks();
    test_threads();
    test_hit();
    tear_down();
    return check_summary();
}
