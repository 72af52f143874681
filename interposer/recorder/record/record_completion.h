/*
 * The row of a request that has ended. Most requests end as the last one of their operation did, on the thread that
 * posted them, and nothing was asked of them in between: these few lines are their whole cost. All others go the slow
 * way.
 */
#ifndef LAPSCOPE_RECORD_COMPLETION_H
#define LAPSCOPE_RECORD_COMPLETION_H

#include "../spool/codec.h"
#include "operation.h"
#include "outstanding.h"
#include "record.h"

/* A request, detached from its index, was ended by the call just recorded. `status` may be NULL for sends that were not
 * cancelled. The caller releases the entry. */
void record_completion_slowly(const struct span *span, struct spool_live *live, const MPI_Status *status,
                              enum spool_ended ended);

/* A request that is not known was ended. */
void record_unknown_completion(void);

/* Whether the row says nothing but when and how. Under MPI_THREAD_MULTIPLE another thread's MPI_Cancel may have come.
 */
static inline int completion_is_plain(const struct thread *t, const struct spool_live *live)
{
    unsigned special = (live->flags & ~(unsigned)SPOOL_LIVE_PERSISTENT) | live->injection_arm | live->unsuccessful_tests;
    return live->thread == t->number && !special && !recorder_multiple && !t->ends_slowly;
}

/* The outcome of the operation's last request where this one ended alike, else 0. */
static inline uint32_t same_outcome(const struct operation *operation, const MPI_Status *status, enum spool_ended ended)
{
    const struct outcome *last = &operation->last_outcome;
    if (UNLIKELY(last->key.ended != ended))
        return 0;
    if (operation->told == TOLD_NOTHING)
        return last->id;
    if (UNLIKELY(operation->told != TOLD_RECEIVED || !status))
        return 0;
    int same = peer_code(status->MPI_SOURCE) == last->key.source && tag_code(status->MPI_TAG) == last->key.tag &&
               status_has_bytes(status, last->key.bytes);
    return LIKELY(same) ? last->id : 0;
}

/* Ticks that the posting thread was inside MPI between the post and the completing call; 0 on other threads. */
static inline uint64_t inside_while_live(const struct span *span, const struct spool_live *live)
{
    const struct thread *t = span->thread;
    if (UNLIKELY(live->thread != t->number)) /* record_call has already counted the completing call itself */
        return 0;
    return t->state->mpi_ticks - live->mpi_ticks_at_post - (span->end - span->begin);
}

/* The REQUEST record, at a place with room for it. */
static inline void put_completion(const struct span *span, const struct spool_live *live, uint32_t outcome, unsigned char *at)
{
    struct spool_stream *stream = &span->thread->stream;
    uint64_t since_post = span->begin > live->post_begin ? span->begin - live->post_begin : 0;
    uint64_t fields[SPOOL_HOT_FIELDS] = {outcome, since_post, live->post_ticks, inside_while_live(span, live),
                                         live->outstanding_bytes};
    spool_stream_commit(stream, spool_put(at, SPOOL_REQUEST, fields, SPOOL_HOT_FIELDS));
}

/* The same where nothing has a row. */
void record_completion_summed(const struct span *span, struct spool_live *live, const MPI_Status *status, enum spool_ended ended);

static inline ALWAYS_INLINE void record_completion(const struct span *span, struct spool_live *live,
                                                   const MPI_Status *status, enum spool_ended ended)
{
    struct thread *t = span->thread;
    const struct operation *operation = (const struct operation *)(uintptr_t)live->owner;
    if (UNLIKELY(t->stream.full)) {
        record_completion_summed(span, live, status, ended);
        return;
    }
    uint32_t outcome = LIKELY(completion_is_plain(t, live)) ? same_outcome(operation, status, ended) : 0;
    if (UNLIKELY(!outcome || !spool_stream_room(&t->stream, t->record_room, 0))) {
        record_completion_slowly(span, live, status, ended);
        return;
    }
    if (live->peer_slot != UINT32_MAX)
        add_outstanding((int32_t)live->peer_slot, -(int64_t)operation->key.bytes);
    put_completion(span, live, outcome, t->stream.at);
}

#endif
