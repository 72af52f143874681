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
#include "request.h"

/* A request, detached from its index, was ended by the call just recorded. `status` may be NULL for sends that were not
 * cancelled. The caller releases the entry. */
void record_completion_slowly(const struct span *span, struct spool_live *live, const MPI_Status *status,
                              enum spool_ended ended);

/* A request that is not known was ended. */
void record_unknown_completion(void);

/* What the requests have in common that a call ends: read once, as between two of them nothing of it changes. */
struct ending {
    struct thread *thread;
    uint64_t begin;           /* of the call */
    uint64_t mpi_ticks;       /* that the thread had been inside of calls before it */
    uint32_t origin;          /* of those that it has posted, and nothing was asked of */
    enum spool_ended ended;
    unsigned char *at, *end;  /* in its stream; no room where all of them go the slow way */
};

/* Ticks that the thread had been inside of calls before this one, which record_call has already counted. */
static inline uint64_t inside_before(const struct span *span)
{
    return span->thread->state->mpi_ticks - (span->end - span->begin);
}

/* Under MPI_THREAD_MULTIPLE another thread's MPI_Cancel may have come. */
static inline struct ending ending_of(const struct span *span, enum spool_ended ended)
{
    struct thread *t = span->thread;
    int is_plain = !recorder_multiple && !t->ends_slowly && !t->stream.full;
    unsigned char *at = t->stream.at;
    return (struct ending){t, span->begin, inside_before(span), request_origin(t->number, 0, 0),
                           ended, at, LIKELY(is_plain) ? t->stream.end - t->record_room : at - 1};
}

/* Whether there is room for another record. */
static inline int has_room(const struct ending *ending)
{
    return ending->at <= ending->end;
}

/* The outcome of the operation's last request where this one ended alike, else 0. What is no rank or tag is told in codes. */
static inline uint32_t same_outcome(const struct operation *operation, const MPI_Status *status, enum spool_ended ended)
{
    const struct outcome *last = &operation->last_outcome;
    if (UNLIKELY(last->key.ended != ended))
        return 0;
    if (operation->told == TOLD_NOTHING)
        return last->id;
    if (UNLIKELY(operation->told != TOLD_RECEIVED || !status || (last->key.source | last->key.tag) < 0))
        return 0;
    int differs = (status->MPI_SOURCE ^ last->key.source) | (status->MPI_TAG ^ last->key.tag);
    return LIKELY(!differs && status_has_bytes(status, last->key.bytes)) ? last->id : 0;
}

/* Ticks that the posting thread was inside MPI between the post and the completing call; 0 on other threads. */
static inline uint64_t inside_while_live(const struct span *span, const struct spool_live *live)
{
    return LIKELY(live->thread == span->thread->number) ? inside_before(span) - live->mpi_ticks_at_post : 0;
}

/* The REQUEST record, at a place with room for it. */
static inline unsigned char *put_completion(struct spool_stream *stream, unsigned char *at, const struct spool_live *live,
                                            uint32_t outcome, uint64_t begin, uint64_t inside)
{
    uint64_t since_post = begin > live->post_begin ? begin - live->post_begin : 0;
    uint64_t fields[SPOOL_HOT_FIELDS] = {outcome, since_post, live->post_ticks, inside, live->outstanding_bytes};
    at = spool_put(at, SPOOL_REQUEST, fields, SPOOL_HOT_FIELDS);
    spool_stream_commit(stream, at);
    return at;
}

/* The row of a request of the call's origin, where it says nothing but when and how; else returns 0. */
static inline ALWAYS_INLINE int put_plainly(struct ending *ending, const struct spool_live *live, const MPI_Status *status)
{
    const struct operation *operation = (const struct operation *)(uintptr_t)live->owner;
    uint32_t outcome = same_outcome(operation, status, ending->ended);
    if (UNLIKELY(!outcome || live->unsuccessful_tests || !has_room(ending)))
        return 0;
    if (live->peer_slot != UINT32_MAX)
        add_outstanding_alone((int32_t)live->peer_slot, -(int64_t)operation->key.bytes);
    ending->at = put_completion(&ending->thread->stream, ending->at, live, outcome, ending->begin,
                                ending->mpi_ticks - live->mpi_ticks_at_post);
    return 1;
}

/* The same where nothing has a row. */
void record_completion_summed(const struct span *span, struct spool_live *live, const MPI_Status *status, enum spool_ended ended);

static inline ALWAYS_INLINE void record_completion(const struct span *span, struct spool_live *live,
                                                   const MPI_Status *status, enum spool_ended ended)
{
    if (UNLIKELY(span->thread->stream.full)) {
        record_completion_summed(span, live, status, ended);
        return;
    }
    struct ending ending = ending_of(span, ended);
    const uint32_t persistent = request_origin(0, SPOOL_LIVE_PERSISTENT, 0);
    if (UNLIKELY((request_origin_of(live) & ~persistent) != ending.origin || !put_plainly(&ending, live, status)))
        record_completion_slowly(span, live, status, ended);
}

#endif
