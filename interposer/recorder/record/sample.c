#include "sample.h"

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/intern.h"
#include "../spool/codec.h"

#include <pthread.h>

int sample_leaves_out;

static struct {
    uint64_t seed;
    pthread_mutex_t stage_lock;
    unsigned stage;           /* by the size of the spool */
    /* The slot under way, which is not looked at in stage 0. This lock may be held when the other is taken. */
    pthread_mutex_t slot_lock;
    uint64_t slot, begin, end; /* its number; ticks; end 0: none yet */
    unsigned slot_stage;
    int is_recorded;
} sample = {.stage_lock = PTHREAD_MUTEX_INITIALIZER, .slot_lock = PTHREAD_MUTEX_INITIALIZER};

/* --- which slots -------------------------------------------------------------------------------------------------- */

int sample_has(uint64_t slot, unsigned stage)
{
    uint64_t word = sample.seed ^ slot;
    if (stage == 0 || stage >= SAMPLE_STAGES)
        return stage == 0;
    word = intern_hash(&word, sizeof word); /* once more: neighbours are still alike in the upper bits */
    word = intern_hash(&word, sizeof word);
    return word >> (64 - 2 * stage) == 0;
}

unsigned sample_stage(uint64_t bytes, uint64_t max_bytes)
{
    unsigned stage = 0;
    while (stage < SAMPLE_STAGES && bytes >= max_bytes - (max_bytes >> (stage + 1)))
        stage++;
    return bytes + 2 * SPOOL_CHUNK_ALIGN > max_bytes ? SAMPLE_STAGES : stage;
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

void sample_begin_to_leave_out(void)
{
    if (!spool_header()->summarized)
        spool_header()->summarized = SPOOL_FULL_MAX_MB;
    sample_leaves_out = 1;
}

static void grown(uint64_t bytes)
{
    unsigned stage = sample_stage(bytes < UINT64_MAX / 2 ? bytes : UINT64_MAX / 2, (uint64_t)config.max_mb << 20);
    pthread_mutex_lock(&sample.stage_lock);
    if (stage > sample.stage) {
        sample_begin_to_leave_out();
        __atomic_store_n(&sample.stage, stage, __ATOMIC_SEQ_CST);
        unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < count; i++)
            __atomic_store_n(&threads[i]->next_look, 0, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&sample.stage_lock);
}

void sample_start(uint64_t seed)
{
    sample.seed = seed;
    spool_grown = grown;
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

static uint64_t since_first(uint64_t ticks)
{
    uint64_t first = spool_header()->first.ticks;
    return ticks > first ? ticks - first : 0;
}

static void put(struct thread *t, enum spool_record type, const uint64_t *fields, unsigned count)
{
    if (spool_stream_room(&t->stream, SPOOL_RECORD_ROOM, 1))
        spool_stream_commit(&t->stream, spool_put(t->stream.at, type, fields, count));
}

/* What was recorded since the slot's begin. */
static void close_slot(struct thread *t, uint64_t now, int is_cut)
{
    if (!sample.is_recorded)
        return;
    uint64_t fields[] = {sample.slot, sample.slot_stage, since_first(sample.begin),
                         now > sample.begin ? now - sample.begin : 0, (uint64_t)is_cut};
    put(t, SPOOL_DETAIL, fields, 5);
    sample.is_recorded = 0;
}

/* The slot of the wall clock that `now` is in. In the one in which stage 0 ended recording goes on to its end. */
static void next_slot(struct thread *t, uint64_t now, unsigned stage, int is_cut)
{
    uint64_t wall = clock_nanoseconds(CLOCK_REALTIME), slot = wall / SAMPLE_SLOT_NS;
    int is_first = sample.end == 0;
    if (is_first) {
        sample.is_recorded = 1;
        sample.begin = spool_header()->first.ticks;
        sample.slot = slot;
    }
    if (!is_first || is_cut) {
        int had_this = sample.slot == slot;
        close_slot(t, now, is_cut);
        sample.slot = slot;
        sample.begin = now;
        sample.slot_stage = stage;
        sample.is_recorded = !had_this && sample_has(slot, stage);
    }
    uint64_t left_ns = SAMPLE_SLOT_NS - wall % SAMPLE_SLOT_NS;
    sample.end = sample.slot_stage == SAMPLE_STAGES ? UINT64_MAX : now + clock_ticks(left_ns, spool_header()->nominal_ticks_per_ns);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void put_skipped(struct thread *t, const struct skipped *skipped)
{
    uint64_t fields[] = {skipped->operation, skipped->count, since_first(skipped->first), skipped->last - skipped->first};
    put(t, SPOOL_LEFT_OUT, fields, 4);
}

/* Says what was left out of operations that may be recorded again. */
static void settle(struct thread *t)
{
    for (struct skipped *skipped = t->skipped; skipped; skipped = skipped->next) {
        put_skipped(t, skipped);
        skipped->count = 0;
    }
    t->skipped = NULL;
}

/* A slot is recorded to its end in the stage that it began with, unless the stage behind that is over, too. */
static int is_used_up(unsigned stage)
{
    return stage >= sample.slot_stage + 2 || (stage == SAMPLE_STAGES && sample.slot_stage != SAMPLE_STAGES);
}

void sample_look(struct thread *t, uint64_t now)
{
    unsigned stage = __atomic_load_n(&sample.stage, __ATOMIC_SEQ_CST);
    if (stage == 0) {
        t->slot_end = UINT64_MAX;
        return;
    }
    pthread_mutex_lock(&sample.slot_lock);
    int is_cut = is_used_up(stage);
    if (now >= sample.end || is_cut)
        next_slot(t, now, stage, is_cut);
    if (sample.is_recorded && t->left_out) {
        settle(t);
        t->left_out = 0;
        t->ends_slowly &= ~ENDS_WITH_SAMPLE;
    } else if (!sample.is_recorded && !t->left_out) {
        t->left_out = SPOOL_LIVE_LEFT_OUT;
        t->left_out_since = now;
        t->ends_slowly |= ENDS_WITH_SAMPLE;
    }
    t->slot_end = sample.end;
    pthread_mutex_unlock(&sample.slot_lock);
}

static void put_single(struct thread *t, const struct skipped *skipped, uint64_t begin)
{
    put_skipped(t, &(struct skipped){.operation = skipped->operation, .count = 1, .first = begin, .last = begin});
}

void sample_left_out(struct thread *t, struct skipped *skipped, uint64_t begin)
{
    if (skipped->kind != SPOOL_SEND && skipped->kind != SPOOL_RECV && skipped->kind != SPOOL_COLLECTIVE)
        return;
    if (t->stream.full) /* nothing that comes will be matched */
        return;
    if (skipped->is_coarse) { /* from here on nobody can count its messages: that is all to be said */
        if (skipped->count++ == 0)
            put_single(t, skipped, begin);
        return;
    }
    if (!t->left_out || begin < t->left_out_since) {
        put_single(t, skipped, begin);
        return;
    }
    if (skipped->count++ == 0) {
        skipped->first = skipped->last = begin;
        skipped->next = t->skipped;
        t->skipped = skipped;
    }
    skipped->first = begin < skipped->first ? begin : skipped->first;
    skipped->last = begin > skipped->last ? begin : skipped->last;
}

void sample_thread_ended(struct thread *t)
{
    settle(t);
}

void sample_end(struct thread *t)
{
    pthread_mutex_lock(&sample.slot_lock);
    if (sample.end)
        close_slot(t, clock_now(), 0);
    pthread_mutex_unlock(&sample.slot_lock);
}
