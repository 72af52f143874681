#include "ending.h"

#include "../record/callsite.h"
#include "../record/path.h"
#include "../spool/writer.h"
#include "memory.h"
#include "touch.h"

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

void watch_free(struct watcher *watcher, struct watch *watch)
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

/* The place has changed since MPI let go of the buffer, and holds what the buffer's word holds. */
static int is_same_again(const struct watch *watch)
{
    uintptr_t places[] = {watch->copy->word.at, watch->copy->place};
    uint64_t words[2];
    return memory_read(places, words, 2) == 2 && words[0] == words[1] && words[1] != watch->contents;
}

void watch_look_further(struct watcher *watcher, struct watch *watch)
{
    look_for_copy(watcher, watch);
    if (!watch->copy)
        return;
    int is_send = watch->subject.side == SPOOL_WATCH_SEND;
    watch->was_copied = (is_send || watch->was_copied) && is_same_again(watch);
}

static uint64_t between(uint64_t begin, uint64_t end)
{
    return end > begin ? end - begin : 0;
}

void watch_end_touched(struct watcher *watcher, struct watch *watch)
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
    watch_free(watcher, watch);
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
    watch_free(watcher, watch);
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

void watch_end_sent(struct watcher *watcher, struct watch *watch, const struct operation *operation, uint64_t begin,
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
    watch_free(watcher, watch);
}
