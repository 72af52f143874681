#include "watch.h"

#include "../base/config.h"
#include "../record/callsite.h"
#include "ending.h"
#include "memory.h"
#include "touch.h"
#include "turn.h"

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
                watch_look_further(watcher, watch);
            if (watch->subject.side == SPOOL_WATCH_RECEIVE && watch->touch.is_known)
                watch_end_touched(watcher, watch);
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
    watch_end_touched(watcher, watch);
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
            watch_free(watcher, watch);
        } else if (side == SPOOL_WATCH_SEND) {
            if (operation && is_sent_from(watch, given))
                watch_end_sent(watcher, watch, operation, begin, mpi_ticks);
            else
                watch_free(watcher, watch);
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
