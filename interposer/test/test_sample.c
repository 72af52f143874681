/* Which slots of a long run are recorded, and what is said of what is not. */
#include "bring_up.h"
#include "check.h"

#include "../recorder/base/config.h"
#include "../recorder/record/sample.h"
#include "../recorder/spool/reader.h"

enum { MANY = 1 << 20 };

static void test_stages(void)
{
    uint64_t mb = 1 << 20, max = 50 * mb;
    CHECK_EQUAL(sample_stage(0, max), 0);
    CHECK_EQUAL(sample_stage(25 * mb - 1, max), 0);
    CHECK_EQUAL(sample_stage(25 * mb, max), 1);
    CHECK_EQUAL(sample_stage(375 * mb / 10, max), 2);
    CHECK_EQUAL(sample_stage(43 * mb, max), 2);
    CHECK_EQUAL(sample_stage(44 * mb, max), 3);
    CHECK_EQUAL(sample_stage(max - SPOOL_CHUNK_ALIGN, max), SAMPLE_STAGES);
    CHECK_EQUAL(sample_stage(2 * max, max), SAMPLE_STAGES);
    unsigned before = 0;
    for (uint64_t bytes = 0; bytes < 2 * max; bytes += 10007) {
        unsigned stage = sample_stage(bytes, max);
        CHECK(stage >= before);
        before = stage;
    }
}

static void test_slots_of_a_later_stage_are_among_the_earlier(void)
{
    unsigned drawn[SAMPLE_STAGES] = {0}, outside = 0;
    for (uint64_t slot = 13376702659u; slot < 13376702659u + MANY; slot++)
        for (unsigned stage = 1; stage < SAMPLE_STAGES; stage++) {
            drawn[stage] += (unsigned)sample_has(slot, stage);
            outside += sample_has(slot, stage) && !sample_has(slot, stage - 1);
        }
    CHECK_EQUAL(outside, 0);
    for (unsigned stage = 1; stage < 6; stage++) {
        double expected = (double)MANY / (double)(1u << 2 * stage), off = drawn[stage] - expected;
        CHECK(off * off < 25 * expected); /* five standard deviations */
    }
    CHECK(sample_has(1, 0) && !sample_has(1, SAMPLE_STAGES));
}

/* Drawn by chance, neighbours are drawn together as often as others are. */
static void test_neighbours(void)
{
    unsigned both = 0;
    for (uint64_t slot = 0; slot < MANY; slot++)
        both += (unsigned)(sample_has(slot, 1) && sample_has(slot + 1, 1));
    double expected = MANY / 16.0, off = both - expected;
    CHECK(off * off < 25 * expected);
}

static void test_jobs_draw_other_slots(void)
{
    unsigned both = 0;
    static unsigned char of_one[MANY];
    sample_start(1);
    for (uint64_t slot = 0; slot < MANY; slot++)
        of_one[slot] = (unsigned char)sample_has(slot, 1);
    sample_start(2);
    for (uint64_t slot = 0; slot < MANY; slot++)
        both += (unsigned)(of_one[slot] && sample_has(slot, 1));
    double expected = MANY / 16.0, off = both - expected;
    CHECK(off * off < 25 * expected);
}

static uint64_t written(const struct thread *t)
{
    return t->stream.chunk->used;
}

/* Behind the limit: what is posted is counted, and told of in one record when it has to be. */
static void test_what_is_left_out(struct thread *t)
{
    struct skipped send = {.operation = 3, .kind = SPOOL_SEND}, file = {.operation = 4, .kind = SPOOL_IO},
                   mixed = {.operation = 5, .kind = SPOOL_RECV, .is_coarse = 1};
    config.max_mb = 1;
    sample_look(t, 1000);
    CHECK_EQUAL(t->left_out, 0);
    t->next_look = 77;
    spool_grown(1 << 20);
    CHECK_EQUAL(t->next_look, 0);
    CHECK_EQUAL(spool_header()->summarized, SPOOL_FULL_MAX_MB);
    uint64_t now = spool_header()->first.ticks + 1000;
    sample_look(t, now);
    CHECK_EQUAL(t->left_out, SPOOL_LIVE_LEFT_OUT);
    CHECK_EQUAL(t->ends_slowly & ENDS_WITH_SAMPLE, ENDS_WITH_SAMPLE);
    uint64_t before = written(t);
    for (uint64_t i = 0; i < 100; i++)
        sample_left_out(t, &send, now + 1 + i);
    sample_left_out(t, &file, now + 1);
    CHECK_EQUAL(written(t), before);
    CHECK(send.count == 100 && send.first == now + 1 && send.last == now + 100 && t->skipped == &send);
    sample_left_out(t, &send, now - 1); /* posted when everything was recorded: on its own */
    uint64_t single = written(t);
    CHECK(single > before && send.count == 100);
    for (int i = 0; i < 100; i++)
        sample_left_out(t, &mixed, now + 1); /* once: nothing can be counted from there on */
    CHECK(written(t) > single && written(t) < single + 32);
    recorder_state = RECORDER_ON;
    single = written(t);
    sample_thread_ended(t);
    CHECK(written(t) > single && written(t) < single + 32 && !t->skipped && send.count == 0);
}

int main(void)
{
    struct thread *t = bring_up();
    sample_start(12345);
    test_stages();
    test_slots_of_a_later_stage_are_among_the_earlier();
    test_neighbours();
    test_jobs_draw_other_slots();
    test_what_is_left_out(t);
    tear_down();
    return check_summary();
}
