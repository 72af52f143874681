/* Threads that end, one after the other and side by side: what the recorder kept for them is used again. */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"

#include "../recorder/record/request.h"
#include "../recorder/record/tally.h"

#include <pthread.h>

enum { SHORT_LIVES = 10000, SIDE_BY_SIDE = 8 };

static pthread_key_t late_key;
static struct thread *seen_late;

/* As a wrapper would: the thread's record, some of it used. */
static struct thread *communicate(void)
{
    struct thread *t = bring_up();
    struct spool_live *live = request_new(t);
    live->thread = (uint16_t)t->number;
    request_insert(t, 77, 0, NULL, live);
    request_release(t, request_take(t, 77, NULL));
    tally_find(t, 0, 1, 8, SPOOL_TALLY_SUMMARY)->count++;
    return t;
}

static void *live_shortly(void *number)
{
    *(unsigned *)number = communicate()->number;
    return NULL;
}

static void test_one_after_the_other(void)
{
    unsigned number = 0, first = 0;
    communicate();
    uint32_t chunks = 0;
    for (int i = 0; i < SHORT_LIVES; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, live_shortly, &number);
        pthread_join(thread, NULL);
        first = i ? first : number;
        chunks = i ? chunks : spool_header()->chunks;
        CHECK_EQUAL(number, first);
    }
    CHECK_EQUAL(thread_count, 2);
    CHECK_EQUAL(tally_find(threads[1], 0, 1, 8, SPOOL_TALLY_SUMMARY)->count, SHORT_LIVES);
    /* its tid is said each time: a chunk holds thousands of them */
    CHECK(spool_header()->chunks - chunks < 4);
}

static pthread_barrier_t all_there;

static void *meet(void *number)
{
    *(unsigned *)number = communicate()->number;
    pthread_barrier_wait(&all_there);
    return NULL;
}

static void test_side_by_side(void)
{
    pthread_barrier_init(&all_there, NULL, SIDE_BY_SIDE);
    for (int round = 0; round < 3; round++) {
        pthread_t thread[SIDE_BY_SIDE];
        unsigned number[SIDE_BY_SIDE], known = 0;
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            pthread_create(&thread[i], NULL, meet, &number[i]);
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            known |= 1u << number[i];
        CHECK_EQUAL(__builtin_popcount(known), SIDE_BY_SIDE);
        CHECK_EQUAL(thread_count, 1 + SIDE_BY_SIDE);
    }
}

/* Runs among the destructors of a thread's own data, in the second round at the latest behind the recorder's. */
static void call_late(void *rounds)
{
    if (rounds == (void *)1)
        pthread_setspecific(late_key, (void *)2);
    else
        seen_late = communicate();
}

static void *end_late(void *unused)
{
    (void)unused;
    communicate();
    pthread_setspecific(late_key, (void *)1);
    return NULL;
}

static void test_calls_while_the_thread_ends(void)
{
    pthread_t thread;
    unsigned before = thread_count;
    pthread_key_create(&late_key, call_late);
    for (int i = 0; i < 100; i++) {
        seen_late = NULL;
        pthread_create(&thread, NULL, end_late, NULL);
        pthread_join(thread, NULL);
        CHECK(seen_late != NULL);
    }
    CHECK_EQUAL(thread_count, before);
}

int main(void)
{
    test_one_after_the_other();
    test_side_by_side();
    test_calls_while_the_thread_ends();
    tear_down();
    return check_summary();
}
