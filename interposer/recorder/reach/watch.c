#include "watch.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../record/callsite.h"
#include "../spool/writer.h"
#include "memory.h"

#include <string.h>
#include <unistd.h>

enum { PERCENT = 100, COPY_HITS = 3 };

/* A receive that nobody has touched for so long makes room when another's turn has come. */
#define PATIENCE_NS 2000000000u

struct watch_cost watch_cost __attribute__((visibility("hidden")));

static void spend(uint64_t ticks)
{
    __atomic_fetch_add(&watch_cost.spent, ticks, __ATOMIC_RELAXED);
}

/* xorshift64* (Vigna 2016) */
static uint64_t next_random(struct watcher *watcher)
{
    uint64_t x = watcher->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    watcher->random = x;
    return x * 0x2545f4914f6cdd1du >> 8;
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

static unsigned hits_of(unsigned at)
{
    return at < SEND_POINTS ? (unsigned)config.reach_hits : COPY_HITS;
}

int watcher_open(struct watcher *watcher, struct thread *t)
{
    *watcher = (struct watcher){.thread = t, .random = clock_now() * 2 + 1 + (uint64_t)getpid() * 0x9e3779b97f4a7c15u};
    watcher->random |= 1;
    for (unsigned i = 0; i < POINTS; i++)
        watcher->watches[i].point.fd = -1;
    for (unsigned i = 0; i < POINTS; i++) {
        int error = watchpoint_open(&watcher->watches[i].point, hits_of(i));
        if (error) {
            watcher_close(watcher);
            return error;
        }
    }
    return 0;
}

void watcher_close(struct watcher *watcher)
{
    for (unsigned i = 0; i < POINTS; i++)
        watchpoint_close(&watcher->watches[i].point);
}

void watcher_forget(struct watcher *watcher)
{
    for (unsigned i = 0; i < POINTS; i++)
        watchpoint_forget(&watcher->watches[i].point);
}

/* --- whose turn it is --------------------------------------------------------------------------------------------- */

static struct turn *turn_of(struct watcher *watcher, const struct operation *operation, enum spool_watch_side side)
{
    struct turn key = {.key = {operation, (uint64_t)side}};
    uint64_t hash = intern_hash(&key.key, sizeof key.key);
    void **slot = intern_find(&watcher->turns, hash, &key.key, sizeof key.key);
    if (slot && !*slot) {
        struct turn *turn = arena_alloc(sizeof *turn);
        if (!turn)
            return NULL;
        turn->hash = hash;
        turn->key = key.key;
        *slot = turn;
        watcher->turns.count++;
    }
    return slot ? *slot : NULL;
}

/* The first of a batch would always find the watchpoints free, so whoever has had more turns than the others waits with a
 * probability. */
static int has_had_its_share(struct watcher *watcher, const struct turn *turn)
{
    uint64_t mean = watcher->taken / (watcher->turns.count ? watcher->turns.count : 1) + 1, had = turn->taken + 1;
    return had > mean && next_random(watcher) % (had * had) >= mean * mean;
}

static int is_over_budget(void)
{
    uint64_t spent = __atomic_load_n(&watch_cost.spent, __ATOMIC_RELAXED), elapsed = clock_now() - watch_cost.began;
    return spent * PERCENT > elapsed * (uint64_t)config.reach_budget;
}

static void let_go(struct watcher *watcher, struct watch *watch, enum spool_let_go why, uint64_t now, uint64_t mpi_ticks);

static int is_late(const struct watch *watch)
{
    return (double)(clock_now() - watch->edge) > PATIENCE_NS * spool_header()->nominal_ticks_per_ns;
}

/* The same instant on the recorder's clock and on the kernel's own, as hits have it. */
static struct instant instant_now(void)
{
    return (struct instant){clock_now(), clock_nanoseconds(CLOCK_MONOTONIC)};
}

static struct watch *free_watch(struct watcher *watcher, enum spool_watch_side side)
{
    unsigned from = side == SPOOL_WATCH_SEND ? 0 : SEND_POINTS, behind = side == SPOOL_WATCH_SEND ? SEND_POINTS : POINTS;
    for (unsigned i = from; i < behind; i++)
        if (watcher->watches[i].state == WATCH_FREE)
            return &watcher->watches[i];
    for (unsigned i = from; i < behind; i++)
        if (is_late(&watcher->watches[i])) {
            let_go(watcher, &watcher->watches[i], SPOOL_LET_GO_LATE, clock_now(), watcher->thread->state->mpi_ticks);
            return &watcher->watches[i];
        }
    return NULL;
}

enum left_out watcher_draws(struct watcher *watcher, const struct operation *operation, enum spool_watch_side side,
                            struct turn **turn)
{
    if (next_random(watcher) % PERCENT >= (uint64_t)config.reach_share)
        return LEFT_OUT_SHARE;
    *turn = turn_of(watcher, operation, side);
    if (!*turn || has_had_its_share(watcher, *turn) || !free_watch(watcher, side))
        return LEFT_OUT_BUSY;
    return is_over_budget() ? LEFT_OUT_BUDGET : LEFT_OUT_NOT;
}

/* --- the beginning of a watch ------------------------------------------------------------------------------------- */

static uint64_t mpi_ticks_now(const struct watcher *watcher)
{
    return watcher->thread->state->mpi_ticks;
}

static int switch_on(struct watcher *watcher, struct watch *watch)
{
    uint64_t begin = clock_now();
    int is_send = watch->subject.side == SPOOL_WATCH_SEND;
    int set = watchpoint_set(&watch->point, is_send ? WATCH_WRITES : WATCH_ANY, (const void *)watch->word.at, watch->word.bytes,
                             is_send ? (unsigned)config.reach_hits : watch->copy ? COPY_HITS : 1);
    watch->state = set ? WATCH_ON : WATCH_FREE;
    watch->since = instant_now();
    if (is_send) /* what was in between is not known */
        watch->mpi_ticks = mpi_ticks_now(watcher);
    spend(clock_now() - begin);
    return set;
}

static void choose_word(struct watcher *watcher, struct watch *watch)
{
    const struct buffer *buffer = &watch->subject.buffer;
    uint64_t random = next_random(watcher);
    watch->copy = copy_of(&watcher->copies, buffer, watch->subject.side == SPOOL_WATCH_SEND, next_random(watcher));
    watch->word = watch->copy ? (struct word){watch->copy->place, 8}
                              : buffer_word(buffer, random % 4 == 0   ? WORD_FIRST
                                                    : random % 4 == 1 ? WORD_LAST
                                                                      : WORD_ANYWHERE, random >> 2);
}

/* Between the thread's stack pointer and the end of its stack. */
static int is_on_stack(const struct watcher *watcher, uintptr_t address)
{
    const struct callsite_cache *cache = watcher->thread->callsites;
    return address >= cache->stack_begin && address < cache->stack_end;
}

static void begin_one(struct watcher *watcher, struct watch *watch, const struct subject *subject, struct turn *turn,
                      uint64_t edge)
{
    struct watchpoint point = watch->point;
    *watch = (struct watch){.point = point, .subject = *subject, .turn = turn, .edge = edge, .alive = edge,
                            .mpi_ticks = mpi_ticks_now(watcher)};
    watch->on_stack = is_on_stack(watcher, subject->buffer.begin);
    choose_word(watcher, watch);
    if (subject->side == SPOOL_WATCH_SEND && turn->delay) {
        watch->state = WATCH_WAITING;
        watch->due = edge + turn->delay;
    } else if (!switch_on(watcher, watch)) {
        return;
    }
    watcher->active++;
    watcher->taken++;
    turn->taken++;
}

void watcher_begin(struct watcher *watcher, const struct subject *subject, struct turn *turn, uint64_t edge)
{
    struct watch *watch;
    for (int i = 0; i < (subject->side == SPOOL_WATCH_SEND ? SEND_POINTS : RECEIVE_POINTS); i++)
        if ((watch = free_watch(watcher, subject->side)))
            begin_one(watcher, watch, subject, turn, edge);
}

/* --- what hit ----------------------------------------------------------------------------------------------------- */

/* The kernel's nanoseconds on the recorder's clock: between two instants that are known on both. */
static uint64_t ticks_of(const struct watch *watch, uint64_t ns, struct instant now)
{
    double all_ns = (double)(now.ns - watch->since.ns), part = all_ns > 0 ? (double)(int64_t)(ns - watch->since.ns) / all_ns : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return watch->since.ticks + (uint64_t)(part * (double)(now.ticks - watch->since.ticks));
}

#if defined(__x86_64__)
/* Whether an address stands directly behind a call instruction: call rel32, or call through a register or memory. */
static int is_behind_call(uintptr_t address)
{
    uint64_t word;
    uintptr_t at = address - 8;
    unsigned char code[8];
    if (address < 4096 || memory_read(&at, &word, 1) != 1)
        return 0;
    memcpy(code, &word, sizeof code);
    if (code[3] == 0xe8)
        return 1;
    for (int length = 2; length <= 7; length++)
        if (code[8 - length] == 0xff && (code[8 - length + 1] >> 3 & 7) == 2)
            return 1;
    return 0;
}
#endif

/* A leaf of a library, as memcpy is, has its caller on top of the stack. */
static void find_frames(struct touch *touch)
{
    touch->frames[0] = touch->hit.address;
    touch->frame_count = 1;
#if defined(__x86_64__)
    if (touch->hit.stack_words && callsite_is_in_libc(touch->hit.address) && is_behind_call(touch->hit.stack[0])) {
        touch->frames[1] = touch->hit.stack[0];
        touch->frame_count = 2;
    }
#endif
}

/* Where a received word is copied to is written by the copy first, with the instruction that reads it or one of the same
 * loop: that is not who wants it. */
static int is_copying(const struct watch *watch, const struct watchpoint_hit *hit)
{
    enum { LOOP_BYTES = 256 };
    return watch->copy && watch->subject.side == SPOOL_WATCH_RECEIVE &&
           (hit->address == watch->copy->instruction ||
            (watch->point.seen == 1 && hit->address - watch->copy->instruction + LOOP_BYTES <= 2 * LOOP_BYTES));
}

/* `inside`: this thread is in MPI, since watcher->entered. */
static void note_hit(struct watcher *watcher, struct watch *watch, const struct watchpoint_hit *hit, int inside)
{
    struct touch *touch = &watch->touch;
    if (is_copying(watch, hit))
        return;
    if (touch->is_known && watch->subject.side == SPOOL_WATCH_RECEIVE)
        return;
    touch->is_known = 1;
    touch->by_mpi = inside;
    touch->hit = *hit;
    touch->ticks = ticks_of(watch, hit->ns, instant_now());
    touch->mpi_ticks = mpi_ticks_now(watcher);
    if (!inside)
        return;
    touch->mpi_ticks += touch->ticks > watcher->entered ? touch->ticks - watcher->entered : 0;
    touch->frames[0] = watcher->thread->inside_return;
    touch->frame_count = 1;
}

static void read_hits(struct watcher *watcher, struct watch *watch, int inside)
{
    struct watchpoint_hit hit;
    if (!watchpoint_was_hit(&watch->point))
        return;
    unsigned before = watch->point.seen;
    while (watchpoint_next(&watch->point, &hit))
        note_hit(watcher, watch, &hit, inside);
    spend((watch->point.seen - before) * watch_cost.hit);
}

/* --- the end of a watch ------------------------------------------------------------------------------------------- */

static void put_row(struct watcher *watcher, const struct watch *watch, struct spool_watch *row)
{
    const struct subject *subject = &watch->subject;
    uintptr_t at = watch->copy ? watch->copy->word.at : watch->word.at;
    row->side = (uint8_t)subject->side;
    row->bytes = subject->buffer.bytes;
    row->offset = at - subject->buffer.begin;
    row->hits = watch->point.seen;
    row->flags = (uint8_t)((watch->on_stack ? SPOOL_WATCH_ON_STACK : 0) | (subject->buffer.sparse ? SPOOL_WATCH_SPARSE : 0));
    row->copy_path = watch->copy ? watch->copy->path : 0;
    if (!watcher->thread->stream.full)
        spool_define(&watcher->thread->stream, SPOOL_WATCH, row, sizeof *row, NULL, 0, NULL, 0);
}

static void set_free(struct watcher *watcher, struct watch *watch)
{
    watchpoint_clear(&watch->point);
    watcher->active -= watch->state != WATCH_FREE;
    watch->state = WATCH_FREE;
}

/* Names who touched; the word's copy is looked for while the contents are there. */
static uint32_t touched_by(struct watcher *watcher, struct watch *watch)
{
    struct touch *touch = &watch->touch;
    if (!touch->by_mpi)
        find_frames(touch);
    uint32_t path = callsite_define(watcher->thread, touch->frames, touch->frame_count);
    if (!touch->by_mpi && !watch->copy && path && !watch->subject.buffer.sparse)
        copy_look(&watcher->copies, &watch->subject.buffer, watch->subject.side == SPOOL_WATCH_SEND, watch->word, &touch->hit,
                  path);
    return path;
}

static uint64_t between(uint64_t begin, uint64_t end)
{
    return end > begin ? end - begin : 0;
}

/* A receive's first touch is known. */
static void end_touched(struct watcher *watcher, struct watch *watch)
{
    uint64_t began = clock_now();
    const struct touch *touch = &watch->touch;
    struct spool_watch row = {.operation = watch->subject.operation->id,
                              .result = SPOOL_WATCH_TOUCHED,
                              .toucher = touch->by_mpi ? SPOOL_TOUCHED_BY_MPI : SPOOL_TOUCHED_BY_PROGRAM,
                              .begin = watch->subject.begin,
                              .edge_begin = watch->edge,
                              .away_ticks = between(watch->edge, touch->ticks),
                              .away_mpi_ticks = between(watch->mpi_ticks, touch->mpi_ticks),
                              .path = touched_by(watcher, watch)};
    put_row(watcher, watch, &row);
    set_free(watcher, watch);
    spend(clock_now() - began);
}

static void let_go(struct watcher *watcher, struct watch *watch, enum spool_let_go why, uint64_t now, uint64_t mpi_ticks)
{
    struct spool_watch row = {.result = SPOOL_WATCH_UNTOUCHED,
                              .let_go = (uint8_t)why,
                              .begin = watch->subject.begin,
                              .edge_begin = watch->edge,
                              .away_ticks = between(watch->edge, now),
                              .away_mpi_ticks = between(watch->mpi_ticks, mpi_ticks)};
    if (watch->subject.side == SPOOL_WATCH_RECEIVE && watch->subject.operation) {
        row.operation = watch->subject.operation->id;
        put_row(watcher, watch, &row);
    }
    set_free(watcher, watch);
}

/* A word that is written often is looked at later the next time: behind the half of what was left of the interval. */
static void learn_delay(const struct watch *watch, int often, uint64_t post)
{
    struct turn *turn = watch->turn;
    uint64_t left = between(watch->touch.ticks, post);
    if (often)
        turn->delay = between(watch->edge, watch->touch.ticks) + left / 2;
    else if (!watch->touch.is_known)
        turn->delay /= 2;
}

/* A buffer is sent again: its last write before is known, or that there was none since it was watched. */
static void end_sent(struct watcher *watcher, struct watch *watch, const struct operation *operation, uint64_t begin,
                     uint64_t mpi_ticks)
{
    const struct touch *touch = &watch->touch;
    uint64_t began = clock_now();
    int often = touch->is_known && watch->point.left == 0;
    uint64_t from = touch->is_known ? touch->ticks : watch->since.ticks;
    uint64_t mpi_from = touch->is_known ? touch->mpi_ticks : watch->mpi_ticks;
    struct spool_watch row = {.operation = operation->id,
                              .result = often             ? SPOOL_WATCH_OFTEN
                                        : touch->is_known ? SPOOL_WATCH_TOUCHED
                                                          : SPOOL_WATCH_UNTOUCHED,
                              .toucher = !touch->is_known ? SPOOL_TOUCHED_BY_NONE
                                         : touch->by_mpi  ? SPOOL_TOUCHED_BY_MPI
                                                          : SPOOL_TOUCHED_BY_PROGRAM,
                              .begin = begin,
                              .edge_begin = begin,
                              .away_ticks = between(from, begin),
                              .away_mpi_ticks = between(mpi_from, mpi_ticks),
                              .path = touch->is_known ? touched_by(watcher, watch) : 0};
    put_row(watcher, watch, &row);
    learn_delay(watch, often, begin);
    set_free(watcher, watch);
    spend(clock_now() - began);
}

/* --- in calls ----------------------------------------------------------------------------------------------------- */

/* The function that had the buffer on its stack has returned when the caller's frame lies above it. */
static int is_gone(struct watcher *watcher, struct watch *watch, uint64_t now)
{
    if (!watch->on_stack || watch->subject.buffer.begin >= watcher->thread->inside) {
        watch->alive = now;
        return 0;
    }
    return 1;
}

void watcher_enter(struct watcher *watcher, uint64_t now)
{
    watcher->entered = now;
    for (unsigned i = 0; i < POINTS; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state == WATCH_ON) {
            read_hits(watcher, watch, 0);
            if (watch->subject.side == SPOOL_WATCH_RECEIVE && watch->touch.is_known)
                end_touched(watcher, watch);
            else if (is_gone(watcher, watch, now))
                let_go(watcher, watch, SPOOL_LET_GO_STACK, watch->alive, mpi_ticks_now(watcher));
        } else if (watch->state == WATCH_WAITING && now >= watch->due && !switch_on(watcher, watch)) {
            watcher->active--;
        }
    }
}

void watcher_leave(struct watcher *watcher)
{
    for (unsigned i = 0; i < POINTS; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state != WATCH_ON)
            continue;
        read_hits(watcher, watch, 1);
        if (watch->subject.side == SPOOL_WATCH_RECEIVE && watch->touch.is_known)
            end_touched(watcher, watch);
    }
}

/* Whether the buffer given to MPI is that of a watch; of one with gaps only the address is compared. */
static int is_same(const struct watch *watch, const struct given_buffer *given, uint64_t bytes)
{
    return given->address == watch->subject.given || watch->word.at - (uintptr_t)given->address < bytes;
}

/* MPI reads, or overwrites, what was received: then at the latest it was needed, whoever moves the bytes. */
static void end_received(struct watcher *watcher, struct watch *watch, enum spool_watch_side side, uint64_t begin,
                         uint64_t mpi_ticks)
{
    if (side == SPOOL_WATCH_RECEIVE) {
        let_go(watcher, watch, SPOOL_LET_GO_REUSED, begin, mpi_ticks);
        return;
    }
    watch->touch = (struct touch){.is_known = 1, .by_mpi = 1, .ticks = begin, .mpi_ticks = mpi_ticks,
                                  .frames = {watcher->thread->inside_return}, .frame_count = 1};
    end_touched(watcher, watch);
}

void watcher_given(struct watcher *watcher, enum spool_watch_side side, const struct given_buffer *given,
                   const struct operation *operation, uint64_t begin, uint64_t mpi_ticks)
{
    uint64_t bytes = bytes_of(given->count, given->type);
    for (unsigned i = 0; i < POINTS; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state == WATCH_FREE || !is_same(watch, given, bytes))
            continue;
        if (watch->subject.side == SPOOL_WATCH_RECEIVE) {
            end_received(watcher, watch, side, begin, mpi_ticks);
        } else if (side == SPOOL_WATCH_SEND && watch->state == WATCH_WAITING) { /* no call of MPI's came in time */
            watch->turn->delay = 0;
            set_free(watcher, watch);
        } else if (side == SPOOL_WATCH_SEND && operation) {
            end_sent(watcher, watch, operation, begin, mpi_ticks);
        }
    }
}

void watcher_filled(struct watcher *watcher, const struct given_buffer *given, uint64_t end)
{
    uint64_t bytes = bytes_of(given->count, given->type);
    for (unsigned i = 0; i < SEND_POINTS; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state == WATCH_ON && is_same(watch, given, bytes))
            watch->touch = (struct touch){.is_known = 1, .by_mpi = 1, .ticks = end, .mpi_ticks = mpi_ticks_now(watcher),
                                          .frames = {watcher->thread->inside_return}, .frame_count = 1};
    }
}

unsigned watcher_end(struct watcher *watcher)
{
    unsigned unsent = 0;
    uint64_t now = clock_now();
    for (unsigned i = 0; i < POINTS; i++) {
        struct watch *watch = &watcher->watches[i];
        unsent += watch->state != WATCH_FREE && watch->subject.side == SPOOL_WATCH_SEND;
        if (watch->state != WATCH_FREE)
            let_go(watcher, watch, SPOOL_LET_GO_ENDED, now, mpi_ticks_now(watcher));
    }
    return unsent;
}
