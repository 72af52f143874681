/* Counters and CPU time of calls, with a PAPI whose values are known. */
#include "bring_up.h"
#include "check.h"
#include "papi_of_test.h"

#include "../recorder/base/config.h"
#include "../recorder/record/counters.h"
#include "../recorder/record/entry.h"
#include "../recorder/record/meter.h"
#include "../recorder/spool/codec.h"

#include <pthread.h>
#include <stdlib.h>

enum { COUNTED = 3 };

/* What the records between two places say; NULL when they are not one SPOOL_COUNTERS of all. */
static const char *written(const unsigned char *begin, const unsigned char *end)
{
    static char text[128];
    uint64_t fields[SPOOL_HOT_FIELDS];
    unsigned char padded[METER_ROOM + 64] = {0};
    if (end == begin)
        return "nothing";
    memcpy(padded, begin, (size_t)(end - begin));
    if (*begin != SPOOL_COUNTERS || spool_get(padded, padded + sizeof padded, fields) != padded + (end - begin))
        return "something else";
    snprintf(text, sizeof text, "%d: %lld %lld %lld %lld", (int)fields[0], (long long)spool_unzigzag(fields[1]),
             (long long)spool_unzigzag(fields[2]), (long long)spool_unzigzag(fields[3]), (long long)spool_unzigzag(fields[4]));
    return text;
}

static const char *call_of(struct thread *t)
{
    static unsigned char room[METER_ROOM];
    return written(room, meter_put_call(t->meter, room));
}

static const char *request_of(struct thread *t, const struct spool_live *live)
{
    static unsigned char room[METER_ROOM];
    return written(room, meter_put_request(t->meter, live, room));
}

static void count(long long first, long long other, long long last)
{
    papi_of_test.values[PAPI_OF_TEST_FIRST] += first;
    papi_of_test.values[PAPI_OF_TEST_OTHER] += other;
    papi_of_test.values[PAPI_OF_TEST_LAST] += last;
}

static void test_what_was_asked(void)
{
    counters_open(" FIRST,MISSING, OTHER,FLOATING GREEDY,LAST,", 0);
    CHECK_EQUAL(counters_counted(), COUNTED);
    static const char *const expected[][4] = {{"FIRST", "", "", "the first event"},
                                              {"MISSING", "", "Event does not exist", ""},
                                              {"OTHER", "bytes", "", "of another component"},
                                              {"FLOATING", "J", "it counts in floating point, which is not supported", "a float"},
                                              {"GREEDY", "", "Event cannot be counted with the others", ""},
                                              {"LAST", "", "", "the last event"}};
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct counter *counter = counters_asked(i);
        CHECK(counter != NULL);
        if (!counter)
            return;
        CHECK_TEXT(counter->name, expected[i][0]);
        CHECK_TEXT(counter->unit, expected[i][1]);
        CHECK_TEXT(counter->problem, expected[i][2]);
        CHECK_TEXT(counter->description, expected[i][3]);
    }
    CHECK(counters_asked(sizeof expected / sizeof expected[0]) == NULL);
    CHECK_EQUAL(papi_of_test.open_sets, 0); /* what was tried out is gone */
}

static void call(struct thread *t, long long inside)
{
    stamp_begin(t);
    count(inside, inside * 10, -inside);
    stamp_end(t);
}

static void test_calls_and_windows(void)
{
    struct thread *t = bring_up();
    struct spool_live live[2] = {{.operation = 1}, {.operation = 2}};
    CHECK(t->meter != NULL);
    CHECK_EQUAL(papi_of_test.open_sets, 2);
    CHECK(meters_wanted() && !stamps_are_plain);
    CHECK(t->record_room >= SPOOL_RECORD_ROOM + METER_ROOM);
    CHECK_TEXT(call_of(t), "nothing"); /* no call yet */
    count(1000, 1000, 1000);
    call(t, 7);
    CHECK_TEXT(call_of(t), "0: 7 70 -7 0");
    meter_post(t->meter, &live[0]);
    count(100, 0, -3);
    call(t, 5); /* posts a second one */
    meter_post(t->meter, &live[1]);
    count(1, 2, 3);
    call(t, 6);
    count(10, 20, 30);
    call(t, 8); /* completes both */
    CHECK_TEXT(call_of(t), "0: 8 80 -8 0");
    CHECK_TEXT(request_of(t, &live[0]), "0: 111 22 30 0");
    CHECK_TEXT(request_of(t, &live[1]), "0: 11 22 33 0");
    meter_post(t->meter, &live[0]); /* the entry's next request */
    count(4, 4, 4);
    call(t, 1);
    CHECK_TEXT(request_of(t, &live[0]), "0: 4 4 4 0");
    struct spool_live unknown = {.operation = 3};
    CHECK_TEXT(request_of(t, &unknown), "nothing");
    count(0, 1ll << 60, 0); /* more than a record takes: nothing rather than something wrong */
    call(t, 1);
    CHECK_TEXT(request_of(t, &live[0]), "nothing");
    CHECK_TEXT(call_of(t), "0: 1 10 -1 0");
}

/* An error handler jumps out of a call: what was counted from its entry to the next call is of neither. */
static void test_jump(void)
{
    struct thread *t = bring_up();
    struct spool_live live = {.operation = 1};
    call(t, 1);
    meter_post(t->meter, &live);
    count(5, 5, 5);
    stamp_begin(t);
    count(77, 77, 77);
    CHECK_TEXT(call_of(t), "nothing");
    call(t, 2);
    CHECK_TEXT(call_of(t), "0: 2 20 -2 0");
    CHECK_TEXT(request_of(t, &live), "0: 5 5 5 0");
}

/* What a thread has counted outside of MPI, in the order of counters; "not all" where a stretch is missing. */
static const char *outside_of(struct thread *t)
{
    static char text[128];
    int64_t values[SPOOL_MAX_COUNTERS] = {0};
    int is_all = meter_add_outside(t->meter, values);
    snprintf(text, sizeof text, "%lld %lld %lld", (long long)values[0], (long long)values[1], (long long)values[2]);
    return is_all ? text : "not all";
}

/* What is counted between calls is summed from the first of them on, in no call and not behind the last one. */
static void *count_outside(void *unused)
{
    struct thread *t = bring_up();
    count(1000, 1000, 1000);
    call(t, 3);
    count(5, 6, 7);
    call(t, 4);
    count(10, 20, 30);
    CHECK_TEXT(outside_of(t), "5 6 7");
    call(t, 0);
    CHECK_TEXT(outside_of(t), "15 26 37");
    stamp_begin(t); /* the application jumps out of this call */
    stamp_begin(t);
    CHECK_TEXT(outside_of(t), "not all");
    return unused;
}

static void test_sums_outside(void)
{
    pthread_t other;
    int error = pthread_create(&other, NULL, count_outside, NULL);
    if (!error)
        pthread_join(other, NULL);
    CHECK(!error);
}

static void *on_a_thread(void *expected)
{
    struct thread *t = bring_up();
    call(t, 3);
    CHECK_TEXT(call_of(t), expected);
    return NULL;
}

static void run_thread(const char *expected)
{
    pthread_t other;
    int error = pthread_create(&other, NULL, on_a_thread, (void *)(uintptr_t)expected);
    if (!error)
        pthread_join(other, NULL);
    CHECK(!error);
}

static void test_threads(void)
{
    run_thread("0: 3 30 -3 0");
    CHECK_EQUAL(papi_of_test.open_sets, 2); /* this thread's own */
    CHECK_EQUAL(papi_of_test.threads_ended, 1);
    papi_of_test.refuse_start = 1;
    run_thread("nothing");
    CHECK_EQUAL(papi_of_test.open_sets, 2);
    papi_of_test.refuse_start = 0;
    recorder_state = RECORDER_OFF; /* MPI_Finalize was called meanwhile */
    run_thread("0: 3 30 -3 0");
    CHECK_EQUAL(papi_of_test.open_sets, 2);
    recorder_state = RECORDER_ON;
}

static void test_reading_fails(void)
{
    struct thread *t = bring_up();
    struct spool_live live = {.operation = 1};
    call(t, 1);
    meter_post(t->meter, &live);
    papi_of_test.refuse_read = 1;
    call(t, 1);
    CHECK_TEXT(call_of(t), "nothing");
    CHECK_TEXT(request_of(t, &live), "nothing");
    papi_of_test.refuse_read = 0;
    call(t, 1);
    CHECK_TEXT(call_of(t), "nothing"); /* for good: what was missed is not known */
}

/* The kernel's clocks: user and system time are what the call took, and the sum is no less than what was worked. */
static void test_cpu_time(void)
{
    struct thread *t = bring_up();
    unsigned char room[METER_ROOM + 64] = {0};
    uint64_t fields[SPOOL_HOT_FIELDS];
    volatile uint64_t work = 0;
    config.cpu_time = 1;
    uint64_t begin = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    stamp_begin(t);
    uint64_t first = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    while (work < 3000000)
        work++;
    uint64_t least = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - first;
    stamp_end(t);
    uint64_t most = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - begin;
    unsigned char *end = meter_put_call(t->meter, room);
    CHECK_EQUAL(*room, SPOOL_CPU);
    CHECK(spool_get(room, room + sizeof room, fields) == end);
    CHECK(fields[0] + fields[1] >= least && fields[0] + fields[1] <= most);
    config.cpu_time = 0;
}

int main(void)
{
    test_what_was_asked();
    test_calls_and_windows();
    test_jump();
    test_threads();
    test_sums_outside();
    test_reading_fails();
    test_cpu_time();
    tear_down();
    return check_summary();
}
