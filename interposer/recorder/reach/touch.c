#include "touch.h"

#include "../record/callsite.h"
#include "memory.h"

#include <string.h>

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
void touch_find_frames(struct touch *touch)
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
    enum { LOOP_BYTES = 128 };
    return watch->copy && watch->subject.side == SPOOL_WATCH_RECEIVE &&
           (hit->address == watch->copy->instruction ||
            (watch->point.seen == 1 && hit->address - watch->copy->instruction + LOOP_BYTES <= 2 * LOOP_BYTES));
}

/* The stack pointer stood above the word, or what must not touch the program's data did: the buffer's function has returned. */
static int is_of_another_frame(const struct watch *watch, const struct watchpoint_hit *hit)
{
    return watch->on_stack &&
           ((hit->registers && hit->value[0] > watch->word.at) || callsite_is_in_loader(hit->address));
}

/* `inside`: this thread is in MPI, since watcher->entered. */
static void note_hit(struct watcher *watcher, struct watch *watch, const struct watchpoint_hit *hit, int inside)
{
    struct touch *touch = &watch->touch;
    if (is_copying(watch, hit)) {
        watch->was_copied = 1;
        return;
    }
    if (watch->has_returned || (touch->is_known && watch->subject.side == SPOOL_WATCH_RECEIVE))
        return;
    if (!touch->is_known && is_of_another_frame(watch, hit)) {
        watch->has_returned = 1;
        return;
    }
    touch->is_known = 1;
    touch->is_named = 0;
    touch->by_mpi = inside;
    touch->hit = *hit;
    touch->ticks = ticks_of(watch, hit->ns, instant_now());
    touch->mpi_ticks = watcher_mpi_ticks(watcher);
    touch->own = watcher->own; /* what the hits before it cost comes when all of them are known */
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
    while (watchpoint_next(&watch->point, &hit)) {
        note_hit(watcher, watch, &hit, inside);
        if (watcher->batched < BATCH)
            watcher->batch[watcher->batched++] = hit.ns;
    }
}

/* All words that were hit since the last call: each hit held the program up, and so what came behind it. */
void touch_read_all(struct watcher *watcher, int inside)
{
    watcher->batched = 0;
    for (unsigned i = 0; i < watcher->points; i++)
        if (watcher->watches[i].state == WATCH_ON)
            read_hits(watcher, &watcher->watches[i], inside);
    if (!watcher->batched)
        return;
    for (unsigned i = 0; i < watcher->points; i++) {
        struct touch *touch = &watcher->watches[i].touch;
        if (watcher->watches[i].state != WATCH_ON || !touch->is_known || touch->own != watcher->own || !touch->hit.ns)
            continue;
        for (unsigned j = 0; j < watcher->batched; j++)
            touch->own += watcher->batch[j] < touch->hit.ns ? watch_cost.hit : 0;
    }
    watcher_spend(watcher, watcher->batched * watch_cost.hit);
}
