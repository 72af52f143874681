/* The memory that copied sends go from: kept, limited, given back; in what order those under way are asked after. Under
 * AddressSanitizer nothing may be left over. */
#include "../recorder/sends/copies.h"
#include "check.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KB = 1024, COMM = 7, OTHER_COMM = 8 };

/* Requests are numbers; those that are over. */
static char over[1 << 16];
static unsigned asked[64], asks;

static int is_over(struct copy *copy)
{
    if (asks < 64)
        asked[asks] = (unsigned)copy->request;
    asks++;
    return over[copy->request];
}

static struct copy *send(uint64_t bytes, unsigned request, uint64_t comm)
{
    struct copy *copy = copy_take(bytes);
    if (copy) {
        memset(copy->data, (int)request, bytes);
        over[request] = 0;
        copy_sent(copy, request, comm);
    }
    return copy;
}

static void test_memory_is_kept(void)
{
    copies_limit(64 * KB);
    struct copy *first = copy_take(3 * KB);
    CHECK(first && first->bytes == 3 * KB && (uintptr_t)first->data % 64 == 0);
    void *data = first->data;
    copy_release(first);
    struct copy *second = copy_take(4 * KB);
    CHECK(second && second->data == data);
    CHECK(copies_most_bytes() == 4 * KB);
    copy_release(second);
    copies_end();
}

static void test_limit_holds(void)
{
    copies_limit(16 * KB);
    CHECK(!copy_take(17 * KB));
    struct copy *copies[4];
    for (int i = 0; i < 4; i++)
        CHECK((copies[i] = copy_take(4 * KB)) != NULL);
    CHECK(!copy_take(1));
    copy_release(copies[0]);
    copy_release(copies[1]);
    struct copy *larger = copy_take(8 * KB); /* what is kept of other sizes makes way */
    CHECK(larger && !copy_take(4 * KB));
    CHECK(copies_most_bytes() == 16 * KB);
    copy_release(larger);
    copy_release(copies[2]);
    copy_release(copies[3]);
    CHECK(!copy_take(UINT64_MAX));
    copies_end();
}

static void test_turns(void)
{
    copies_limit(64 * KB);
    CHECK(!copies_reap(2, 0, is_over) && asks == 0);
    for (unsigned request = 1; request <= 5; request++)
        CHECK(send(KB, request, COMM));
    CHECK(copies_under_way() == 5);
    asks = 0;
    CHECK(copies_reap(2, 0, is_over) && copies_reap(2, 0, is_over));
    CHECK(asks == 4 && asked[0] == 1 && asked[1] == 2 && asked[2] == 3 && asked[3] == 4);
    over[2] = over[5] = 1;
    asks = 0;
    CHECK(copies_reap(3, 0, is_over) && copies_under_way() == 3);
    CHECK(asked[0] == 5 && asked[1] == 1 && asked[2] == 2);
    over[1] = over[3] = over[4] = 1;
    CHECK(!copies_reap(UINT_MAX, 0, is_over) && copies_under_way() == 0);
    copies_end();
}

static void test_communicators(void)
{
    copies_limit(64 * KB);
    CHECK(send(KB, 1, COMM) && send(KB, 2, OTHER_COMM) && send(KB, 3, COMM));
    over[1] = over[2] = over[3] = 1;
    copies_forget_comm(OTHER_COMM); /* the handle of the next one */
    CHECK(send(KB, 4, OTHER_COMM));
    over[4] = 1;
    CHECK(!copies_reap(UINT_MAX, COMM, is_over) && copies_under_way() == 2);
    CHECK(!copies_reap(UINT_MAX, OTHER_COMM, is_over) && copies_under_way() == 1);
    CHECK(!copies_reap(UINT_MAX, 0, is_over) && copies_under_way() == 0);
    copies_end();
}

/* An error handler of the application's may leave the function that tells, for ever: others go on. */
static int inside_reaps;

static int reaps_within(struct copy *copy)
{
    (void)copy;
    inside_reaps = copies_reap(UINT_MAX, 0, is_over);
    CHECK(send(KB, 9, COMM));
    return 1;
}

static void test_one_asks_at_a_time(void)
{
    copies_limit(64 * KB);
    CHECK(send(KB, 1, COMM));
    asks = 0;
    copies_reap(1, 0, reaps_within);
    CHECK(inside_reaps == 1 && asks == 0 && copies_under_way() == 1);
    over[9] = 1;
    CHECK(!copies_reap(UINT_MAX, 0, is_over));
    copies_end();
}

enum { THREADS = 4, ROUNDS = 2000 };

static int takes_turns(struct copy *copy)
{
    return copy->request % 3 != 0 || rand() % 2;
}

static void *sender(void *number)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct copy *copy = copy_take(1 + (i * 37) % (8 * KB));
        if (copy) {
            memset(copy->data, *(const int *)number, copy->bytes);
            copy_sent(copy, i, COMM);
        }
        copies_reap(2, 0, takes_turns);
    }
    return NULL;
}

static void test_threads(void)
{
    copies_limit(256 * KB);
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, sender, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (copies_reap(UINT_MAX, 0, takes_turns))
        ;
    CHECK(copies_under_way() == 0 && copies_most_bytes() <= 256 * KB);
    copies_end();
}

int main(void)
{
    test_memory_is_kept();
    test_limit_holds();
    test_turns();
    test_communicators();
    test_one_asks_at_a_time();
    test_threads();
    return check_summary();
}
