/*
 * The index of live requests against a plain model: random posts and completions, unique and shared handles, handles
 * reused, handles moved to other variables; and entries completed by another thread than the one that posted them.
 */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"

#include "../recorder/record/request.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { LIVE_AT_MOST = 3000, STEPS = 400000, SHARED_HANDLE = 77, HANDED_OVER = 50000, IN_FLIGHT = 64 };

/* A live request as the test knows it. */
struct known {
    uint64_t key;
    void *variable;
    struct spool_live *live;
};

static char variables[IN_FLIGHT];

static struct spool_live *post(struct thread *t, uint64_t key, int shared, void *variable, struct spool_live **stale)
{
    struct spool_live *live = request_new(t);
    live->thread = (uint16_t)t->number;
    live->flags = 0;
    live->post_begin = clock_now();
    live->operation = 1;
    *stale = request_insert(t, key, shared, variable, live);
    return live;
}

/* The model is a list of at most LIVE_AT_MOST, taken from at random places. Some requests have the shared handle: never
 * more than are searched for the right variable. */
static void test_against_model(void)
{
    struct thread *t = bring_up();
    struct known *known = calloc(LIVE_AT_MOST, sizeof *known);
    unsigned count = 0, sharing = 0, seed = 5;
    unsigned long wrong = 0, stale_seen = 0;
    uint64_t fresh = 1000, places = 0;
    for (int step = 0; step < STEPS; step++) {
        int grow = count < LIVE_AT_MOST && (count == 0 || rand_r(&seed) % (step / 20000 % 2 ? 3 : 2) == 0);
        if (grow) {
            int shared = sharing < 60 && rand_r(&seed) % 8 == 0;
            /* handles are reused at once, as MPIs do: a small pool, those in use skipped */
            uint64_t key = shared ? SHARED_HANDLE : ++fresh % (4 * LIVE_AT_MOST) + 1000;
            for (unsigned i = 0; !shared && i < count; i++)
                if (known[i].key == key) {
                    key = ++fresh % (4 * LIVE_AT_MOST) + 1000;
                    i = 0;
                }
            struct spool_live *stale;
            void *variable = (void *)(uintptr_t)(8 * ++places); /* only compared, never followed */
            known[count] = (struct known){key, variable, post(t, key, shared, variable, &stale)};
            stale_seen += stale != NULL;
            sharing += (unsigned)shared;
            count++;
        } else {
            unsigned at = (unsigned)rand_r(&seed) % count;
            wrong += request_find(t, known[at].key, known[at].variable) != known[at].live;
            struct spool_live *taken = request_take(t, known[at].key, known[at].variable);
            wrong += taken != known[at].live;
            wrong += taken && known[at].key != SHARED_HANDLE && request_find(t, known[at].key, known[at].variable) != NULL;
            if (taken)
                request_release(t, taken);
            sharing -= known[at].key == SHARED_HANDLE;
            known[at] = known[--count];
        }
    }
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(stale_seen, 0);
    for (unsigned i = 0; i < count; i++) {
        struct spool_live *taken = request_take(t, known[i].key, known[i].variable);
        CHECK(taken == known[i].live);
        if (taken)
            request_release(t, taken);
    }
    CHECK_EQUAL(t->index.count, 0);
    free(known);
}

/* A handle found in another variable than it was posted into: the only one, or the oldest of a shared handle. */
static void test_moved(void)
{
    struct thread *t = bring_up();
    struct spool_live *stale, *alone = post(t, 5, 0, &variables[0], &stale);
    CHECK(request_take(t, 5, &variables[1]) == alone);
    request_release(t, alone);
    struct spool_live *first = post(t, SHARED_HANDLE, 1, &variables[0], &stale);
    struct spool_live *second = post(t, SHARED_HANDLE, 1, &variables[0], &stale);
    struct spool_live *third = post(t, SHARED_HANDLE, 1, &variables[2], &stale);
    CHECK(stale == NULL);
    CHECK(request_take(t, SHARED_HANDLE, &variables[2]) == third);
    CHECK(request_take(t, SHARED_HANDLE, &variables[9]) == first);
    CHECK(request_take(t, SHARED_HANDLE, &variables[9]) == second);
    CHECK(request_take(t, SHARED_HANDLE, &variables[9]) == NULL);
    request_release(t, first);
    request_release(t, second);
    request_release(t, third);
}

/* A handle that is given out again although its request still counts as live: that request's end was not seen. */
static void test_stale(void)
{
    struct thread *t = bring_up();
    struct spool_live *stale, *old = post(t, 6, 0, &variables[0], &stale);
    struct spool_live *young = post(t, 6, 0, &variables[1], &stale);
    CHECK(stale == old);
    request_release(t, old);
    CHECK(request_take(t, 6, &variables[1]) == young);
    request_release(t, young);
}

/* What does not complete is put back. */
static void test_put_back(void)
{
    struct thread *t = bring_up();
    struct spool_live *stale, *live = post(t, 8, 0, &variables[0], &stale);
    CHECK(request_take(t, 8, &variables[0]) == live);
    CHECK(request_find(t, 8, &variables[0]) == NULL);
    request_attach(8, live);
    CHECK(request_take(t, 8, &variables[0]) == live);
    request_release(t, live);
}

/* --- two threads -------------------------------------------------------------------------------------------------- */

static struct {
    struct spool_live *live[IN_FLIGHT];
    int full[IN_FLIGHT];
} belt;

static unsigned long mixed_up;

static void *complete(void *unused)
{
    struct thread *t = bring_up();
    for (uint64_t i = 0; i < HANDED_OVER; i++) {
        unsigned at = i % IN_FLIGHT;
        while (!__atomic_load_n(&belt.full[at], __ATOMIC_ACQUIRE))
            sched_yield();
        struct spool_live *expected = belt.live[at], *taken = request_take(t, 100 + at, &t);
        mixed_up += taken != expected;
        if (taken)
            request_release(t, taken);
        __atomic_store_n(&belt.full[at], 0, __ATOMIC_RELEASE);
    }
    return unused;
}

static void test_two_threads(void)
{
    struct thread *t = bring_up();
    pthread_t other;
    uint32_t chunks = spool_header()->chunks;
    recorder_multiple = 1;
    CHECK(pthread_create(&other, NULL, complete, NULL) == 0);
    for (uint64_t i = 0; i < HANDED_OVER; i++) {
        unsigned at = i % IN_FLIGHT;
        struct spool_live *stale;
        while (__atomic_load_n(&belt.full[at], __ATOMIC_ACQUIRE))
            sched_yield();
        belt.live[at] = post(t, 100 + at, 0, &variables[at], &stale);
        __atomic_store_n(&belt.full[at], 1, __ATOMIC_RELEASE);
    }
    pthread_join(other, NULL);
    recorder_multiple = 0;
    CHECK_EQUAL(mixed_up, 0);
    CHECK(spool_header()->chunks <= chunks + 4); /* entries come back to the thread that posts */
}

/* --- persistent requests ------------------------------------------------------------------------------------------ */

enum { RING = 4, ROUNDS = 3000 };

static struct spool_live *make_persistent(struct thread *t, uint64_t key)
{
    struct spool_live *stale, *live = post(t, key, 0, &variables[key % IN_FLIGHT], &stale);
    live->operation = 0;
    live->home = live->thread;
    live->flags = SPOOL_LIVE_PERSISTENT;
    return live;
}

static void test_persistent(void)
{
    struct thread *t = bring_up();
    struct spool_live *live = make_persistent(t, 9);
    CHECK(request_find(t, 9, &variables[9]) == live && !request_is_active(live));
    live->operation = 5; /* started, and completed: it is found meanwhile and again */
    CHECK(request_take(t, 9, &variables[9]) == live);
    CHECK(request_find(t, 9, &variables[9]) == live);
    live->operation = 0;
    request_attach(9, live);
    request_detach(9, live); /* it was there once */
    CHECK(request_find(t, 9, &variables[9]) == NULL);
    request_attach(9, live); /* it could not be freed */
    CHECK(request_take(t, 9, &variables[9]) == live);
    request_detach(9, live);
    request_release(t, live);
    CHECK(request_find(t, 9, &variables[9]) == NULL);
    CHECK(t->free_live == live);
}

static int turn; /* whose it is to use the request: each thread starts it once a round, the next one completes it */

static void *start_and_complete(void *argument)
{
    int own = *(const int *)argument;
    struct thread *t = bring_up();
    for (int round = 0; round < ROUNDS; round++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != own)
            sched_yield();
        struct spool_live *live = request_take(t, 10, NULL);
        __atomic_fetch_add(&mixed_up, !live || (request_is_active(live) && live->thread == t->number), __ATOMIC_RELAXED);
        if (live) {
            live->operation = 0;
            request_attach(10, live);
            live = request_find(t, 10, NULL);
            live->thread = (uint16_t)t->number; /* who started it; its home stays */
            __atomic_store_n(&live->operation, 7, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&turn, (own + 1) % RING, __ATOMIC_RELEASE);
        struct spool_live *stale, *mine = post(t, 1000 + (uint64_t)own, 0, &t, &stale); /* while others look for theirs */
        __atomic_fetch_add(&mixed_up, request_take(t, 1000 + (uint64_t)own, &t) != mine, __ATOMIC_RELAXED);
        request_release(t, mine);
    }
    return NULL;
}

/* One request goes from thread to thread. */
static void test_persistent_ring(void)
{
    struct thread *t = bring_up();
    pthread_t others[RING];
    int numbers[RING];
    mixed_up = 0;
    recorder_multiple = 1;
    struct spool_live *live = make_persistent(t, 10);
    for (int i = 0; i < RING; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&others[i], NULL, start_and_complete, &numbers[i]) == 0);
    }
    for (int i = 0; i < RING; i++)
        pthread_join(others[i], NULL);
    CHECK_EQUAL(mixed_up, 0);
    CHECK(request_take(t, 10, NULL) == live);
    request_detach(10, live);
    request_release(t, live);
    recorder_multiple = 0;
}

int main(void)
{
    test_against_model();
    test_moved();
    test_stale();
    test_put_back();
    test_two_threads();
    test_persistent();
    test_persistent_ring();
    tear_down();
    return check_summary();
}
