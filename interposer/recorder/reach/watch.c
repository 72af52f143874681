#include "watch.h"

#include "../base/config.h"
#include "../record/callsite.h"
#include "../record/path.h"
#include "../spool/writer.h"
#include "memory.h"
#include "touch.h"
#include "turn.h"

#include <string.h>
#include <unistd.h>

enum { COPY_HITS = 3 };

struct watch_cost watch_cost __attribute__((visibility("hidden")));

void watcher_spend(struct watcher *watcher, uint64_t ticks)
{
    watcher->own += ticks;
    __atomic_fetch_add(&watch_cost.spent, ticks, __ATOMIC_RELAXED);
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

void watcher_init(struct watcher *watcher, struct thread *t)
{
    *watcher = (struct watcher){.thread = t, .random = clock_now() * 2 + 1 + (uint64_t)getpid() * 0x9e3779b97f4a7c15u};
    watcher->random |= 1;
}

int watcher_open(struct watcher *watcher)
{
    int error = 0;
    unsigned hits = config.reach_hits > COPY_HITS ? (unsigned)config.reach_hits : COPY_HITS;
    watcher->points = watcher->active = watcher->batched = 0;
    for (unsigned i = 0; i < POINTS; i++)
        watcher->watches[i] = (struct watch){.point.fd = -1};
    while (watcher->points < POINTS && (error = watchpoint_open(&watcher->watches[watcher->points].point, hits)) == 0)
        watcher->points++;
    watcher->send_points = watcher->points / 2;
    return watcher->points ? 0 : error;
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

/* --- the beginning of a watch ------------------------------------------------------------------------------------- */

static int switch_on(struct watcher *watcher, struct watch *watch)
{
    int is_send = watch->subject.side == SPOOL_WATCH_SEND;
    /* its first byte alone: rep stosb and rep movsb, as memset and memcpy use them, hit once for each byte that is watched */
    int set = watchpoint_set(&watch->point, is_send ? WATCH_WRITES : WATCH_ANY, (const void *)watch->word.at, 1,
                             is_send ? (unsigned)config.reach_hits : watch->copy ? COPY_HITS : 1);
    watch->state = set ? WATCH_ON : WATCH_FREE;
    watch->since = instant_now();
    if (is_send) { /* what was in between is not known */
        watch->mpi_ticks = watcher_mpi_ticks(watcher);
        watch->own = watcher->own;
    }
    return set;
}

static void choose_word(struct watcher *watcher, struct watch *watch)
{
    const struct buffer *buffer = &watch->subject.buffer;
    uint64_t random = turn_random(watcher);
    watch->copy = copy_of(&watcher->copies, buffer, watch->subject.operation, turn_random(watcher));
    watch->word = watch->copy ? (struct word){watch->copy->place, 8}
                              : buffer_word(buffer, random % 4 == 0   ? WORD_FIRST
                                                    : random % 4 == 1 ? WORD_LAST
                                                                      : WORD_ANYWHERE, random >> 2);
    watch->contents = 0;
    if (watch->copy)
        memory_read(&watch->copy->place, &watch->contents, 1);
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
                            .mpi_ticks = watcher_mpi_ticks(watcher), .own = watcher->own_at_edge};
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
    for (unsigned i = 0; i < watcher->points; i++)
        if ((watch = turn_free_watch(watcher, subject->side)))
            begin_one(watcher, watch, subject, turn, edge);
}

/* --- the end of a watch ------------------------------------------------------------------------------------------- */

/* The place has changed since MPI let go of the buffer, and holds what the buffer's word holds. */
static int is_same_again(const struct watch *watch)
{
    uintptr_t places[] = {watch->copy->word.at, watch->copy->place};
    uint64_t words[2];
    return memory_read(places, words, 2) == 2 && words[0] == words[1] && words[1] != watch->contents;
}

/* Whether a row can be believed: that of a copy where the copy was seen again. */
static int is_certain(struct watch *watch)
{
    if (!watch->copy)
        return 1;
    if (watch->touch.by_mpi && watch->subject.side == SPOOL_WATCH_SEND) /* what MPI wrote there need not have been copied */
        watch->was_copied = 0;
    watch->copy->seen += watch->was_copied != 0;
    watch->copy->missed += !watch->was_copied;
    return watch->was_copied;
}

static void put_row(struct watcher *watcher, struct watch *watch, struct spool_watch *row)
{
    const struct subject *subject = &watch->subject;
    uintptr_t at = watch->copy ? watch->copy->word.at : watch->word.at;
    if (watcher->thread->stream.full || watcher->thread->left_out || !is_certain(watch))
        return;
    row->side = (uint8_t)subject->side;
    row->bytes = subject->buffer.bytes;
    row->offset = at - subject->buffer.begin;
    row->hits = row->result == SPOOL_WATCH_UNTOUCHED ? 0 : watch->point.seen ? watch->point.seen : 1; /* unseen: the kernel's */
    row->flags = (uint8_t)((watch->on_stack ? SPOOL_WATCH_ON_STACK : 0) | (subject->buffer.sparse ? SPOOL_WATCH_SPARSE : 0));
    row->copy_path = watch->copy ? watch->copy->path : 0;
    spool_define(&watcher->thread->stream, SPOOL_WATCH, row, sizeof *row, NULL, 0, NULL, 0);
}

static void set_free(struct watcher *watcher, struct watch *watch)
{
    watchpoint_clear(&watch->point);
    watcher->active -= watch->state != WATCH_FREE;
    watch->state = WATCH_FREE;
}

/* Names a touch once. */
static uint32_t touched_by(struct watcher *watcher, struct watch *watch)
{
    struct touch *touch = &watch->touch;
    if (touch->is_named)
        return touch->path;
    touch->is_named = 1;
    if (!touch->by_mpi)
        touch_find_frames(touch);
    /* calls that are not recorded: MPI_Pack, MPI_Unpack, MPI_Reduce_local */
    touch->by_mpi = touch->by_mpi || callsite_is_in_mpi(touch->frames[touch->frame_count - 1]);
    return touch->path = path_define(watcher->thread, touch->frames, touch->frame_count);
}

/* While the contents are as the touch left them, and MPI has not been at work. */
static void look_for_copy(struct watcher *watcher, struct watch *watch)
{
    struct touch *touch = &watch->touch;
    if (touch->by_mpi || watch->copy || watch->subject.buffer.sparse || watch->looked == touch->ticks)
        return;
    watch->looked = touch->ticks;
    uint32_t path = touched_by(watcher, watch);
    if (path && !touch->by_mpi)
        copy_look(&watcher->copies, &watch->subject.buffer, watch->subject.operation, watch->word, &touch->hit, path);
}

static uint64_t between(uint64_t begin, uint64_t end)
{
    return end > begin ? end - begin : 0;
}

/* A receive's first touch is known. */
static void end_touched(struct watcher *watcher, struct watch *watch)
{
    const struct touch *touch = &watch->touch;
    uint32_t path = touched_by(watcher, watch);
    struct spool_watch row = {.operation = watch->subject.operation->id,
                              .result = SPOOL_WATCH_TOUCHED,
                              .toucher = touch->by_mpi ? SPOOL_TOUCHED_BY_MPI : SPOOL_TOUCHED_BY_PROGRAM,
                              .begin = watch->subject.begin,
                              .edge_begin = watch->edge,
                              .away_ticks = between(watch->edge + between(watch->own, touch->own) + (touch->hit.ns ? watch_cost.before : 0),
                                                    touch->ticks),
                              .away_mpi_ticks = between(watch->mpi_ticks, touch->mpi_ticks),
                              .path = path};
    put_row(watcher, watch, &row);
    set_free(watcher, watch);
}

void watch_let_go(struct watcher *watcher, struct watch *watch, enum spool_let_go why, uint64_t now, uint64_t mpi_ticks)
{
    struct spool_watch row = {.result = SPOOL_WATCH_UNTOUCHED,
                              .let_go = (uint8_t)why,
                              .begin = watch->subject.begin,
                              .edge_begin = watch->edge,
                              .away_ticks = between(watch->edge + between(watch->own, watcher->own), now),
                              .away_mpi_ticks = between(watch->mpi_ticks, mpi_ticks)};
    if (watch->subject.side == SPOOL_WATCH_RECEIVE && !watch->copy) { /* of a copy it is not certain who else has touched it */
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
    if (often && !turn->is_in_vain)
        turn->delay = between(watch->edge, watch->touch.ticks) + left / 2;
    else if (!watch->touch.is_known)
        turn->delay /= 2;
}

/* A buffer is sent again: its last write before is known, or that there was none since it was watched. */
static void end_sent(struct watcher *watcher, struct watch *watch, const struct operation *operation, uint64_t begin,
                     uint64_t mpi_ticks)
{
    const struct touch *touch = &watch->touch;
    int often = touch->is_known && watch->point.left == 0;
    uint64_t from = touch->is_known ? touch->ticks : watch->since.ticks;
    uint64_t mpi_from = touch->is_known ? touch->mpi_ticks : watch->mpi_ticks;
    uint32_t path = touch->is_known ? touched_by(watcher, watch) : 0;
    uint64_t own = touch->is_known ? touch->own + (touch->hit.ns ? watch_cost.before : 0) : watch->own;
    struct spool_watch row = {.operation = operation->id,
                              .result = often             ? SPOOL_WATCH_OFTEN
                                        : touch->is_known ? SPOOL_WATCH_TOUCHED
                                                          : SPOOL_WATCH_UNTOUCHED,
                              .toucher = !touch->is_known ? SPOOL_TOUCHED_BY_NONE
                                         : touch->by_mpi  ? SPOOL_TOUCHED_BY_MPI
                                                          : SPOOL_TOUCHED_BY_PROGRAM,
                              .begin = begin,
                              .edge_begin = begin,
                              .away_ticks = between(from + between(own, watcher->own), begin),
                              .away_mpi_ticks = between(mpi_from, mpi_ticks),
                              .path = path};
    put_row(watcher, watch, &row);
    learn_delay(watch, often, begin);
    set_free(watcher, watch);
}

/* --- in calls ----------------------------------------------------------------------------------------------------- */

/* The function that had the buffer on its stack has returned when the caller's frame lies above it. */
static int is_gone(struct watcher *watcher, struct watch *watch, uint64_t now)
{
    if (!watch->on_stack || (watch->subject.buffer.begin >= watcher->thread->inside && !watch->has_returned)) {
        watch->alive = now;
        return 0;
    }
    return 1;
}

/* Of copies: what the memory tells now, before MPI writes to it. */
static void look_further(struct watcher *watcher, struct watch *watch)
{
    look_for_copy(watcher, watch);
    if (!watch->copy)
        return;
    int is_send = watch->subject.side == SPOOL_WATCH_SEND;
    watch->was_copied = (is_send || watch->was_copied) && is_same_again(watch);
}

void watcher_enter(struct watcher *watcher, uint64_t now)
{
    watcher->entered = now;
    if (!watcher->active)
        return;
    touch_read_all(watcher, 0);
    for (unsigned i = 0; i < watcher->points; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state == WATCH_ON) {
            if (watch->touch.is_known)
                look_further(watcher, watch);
            if (watch->subject.side == SPOOL_WATCH_RECEIVE && watch->touch.is_known)
                end_touched(watcher, watch);
            else if (is_gone(watcher, watch, now))
                watch_let_go(watcher, watch, SPOOL_LET_GO_STACK, watch->alive, watcher_mpi_ticks(watcher));
        } else if (watch->state == WATCH_WAITING && now >= watch->due && !switch_on(watcher, watch)) {
            watcher->active--;
        }
    }
}

/* What MPI touched ends at its next call: it may have been given the buffer to overwrite it (watcher_given). */
void watcher_leave(struct watcher *watcher)
{
    if (watcher->active)
        touch_read_all(watcher, 1);
}

/* Whether the buffer given to MPI is that of a watch; of one with gaps only the address is compared. */
static int is_same(const struct watch *watch, const struct known_buffer *given)
{
    return given->address == watch->subject.given || watch->word.at - (uintptr_t)given->address < given->bytes;
}

/* The call of MPI's under way touched, whether or not anything hit: the kernel may have moved the bytes. */
static struct touch touch_of_call(const struct watcher *watcher, uint64_t ticks, uint64_t mpi_ticks)
{
    return (struct touch){.is_known = 1, .by_mpi = 1, .ticks = ticks, .mpi_ticks = mpi_ticks, .own = watcher->own,
                          .frames = {watcher->thread->inside_return}, .frame_count = 1};
}

/* MPI reads, or overwrites, what was received: then at the latest it was needed, whoever moves the bytes. */
static void end_received(struct watcher *watcher, struct watch *watch, enum spool_watch_side side, uint64_t begin,
                         uint64_t mpi_ticks)
{
    if (side == SPOOL_WATCH_RECEIVE) {
        watch_let_go(watcher, watch, SPOOL_LET_GO_REUSED, begin, mpi_ticks);
        return;
    }
    watch->touch = touch_of_call(watcher, begin, mpi_ticks);
    end_touched(watcher, watch);
}

/* Another buffer than was watched may hold the word now: where the buffer was freed, or its parts are sent in turn. Then the row is
 * of that one, and there is none where the word may lie in a gap of it. */
static int is_sent_from(struct watch *watch, const struct known_buffer *given)
{
    const struct buffer *now = &given->buffer;
    if (given->address == watch->subject.given)
        return 1;
    if (watch->copy || given->why != LEFT_OUT_NOT || now->sparse || !buffer_holds(now, watch->word.at))
        return 0;
    watch->subject.buffer = *now;
    return 1;
}

void watcher_given(struct watcher *watcher, enum spool_watch_side side, const struct known_buffer *given,
                   const struct operation *operation, uint64_t begin, uint64_t mpi_ticks)
{
    for (unsigned i = 0; i < watcher->points; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state == WATCH_FREE || !is_same(watch, given))
            continue;
        if (watch->subject.side == SPOOL_WATCH_RECEIVE) {
            end_received(watcher, watch, side, begin, mpi_ticks);
        } else if (side == SPOOL_WATCH_SEND && watch->state == WATCH_WAITING) { /* no call of MPI's came in time */
            watch->turn->delay = 0;
            watch->turn->is_in_vain = 1;
            set_free(watcher, watch);
        } else if (side == SPOOL_WATCH_SEND) {
            if (operation && is_sent_from(watch, given))
                end_sent(watcher, watch, operation, begin, mpi_ticks);
            else
                set_free(watcher, watch);
        }
    }
}

void watcher_filled(struct watcher *watcher, const struct known_buffer *given, uint64_t end)
{
    for (unsigned i = 0; i < watcher->send_points; i++) {
        struct watch *watch = &watcher->watches[i];
        if (watch->state == WATCH_ON && is_same(watch, given))
            watch->touch = touch_of_call(watcher, end, watcher_mpi_ticks(watcher));
    }
}

unsigned watcher_end(struct watcher *watcher)
{
    unsigned unsent = 0;
    uint64_t now = clock_now();
    watcher_enter(watcher, now); /* what was touched since the last call */
    for (unsigned i = 0; i < watcher->points; i++) {
        struct watch *watch = &watcher->watches[i];
        unsent += watch->state != WATCH_FREE && watch->subject.side == SPOOL_WATCH_SEND;
        if (watch->state != WATCH_FREE)
            watch_let_go(watcher, watch, SPOOL_LET_GO_ENDED, now, watcher_mpi_ticks(watcher));
    }
    return unsent;
}
