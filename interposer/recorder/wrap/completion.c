#include "completion.h"

#include "../record/record_completion.h"
#include "../record/sample.h"

/* A persistent request outlives its activation, and need not have been active. */
static __attribute__((noinline)) void complete_persistent(const struct span *span, const struct batch *batch, int at,
                                                          struct spool_live *live, const MPI_Status *status,
                                                          enum spool_ended ended)
{
    if (request_is_active(live))
        record_completion(span, live, status, ended);
    if (ended == SPOOL_FREED) {
        request_detach(request_key(batch->handles[at]), live);
        request_release(span->thread, live);
        return;
    }
    __atomic_store_n(&live->operation, 0, __ATOMIC_RELEASE);
}

/* The request at a place of the batch, detached from its index, is over. */
static inline ALWAYS_INLINE void end_taken(const struct span *span, const struct batch *batch, int at, struct spool_live *live,
                                           const MPI_Status *status, enum spool_ended ended)
{
    if (UNLIKELY(!live)) {
        if (!is_null_request(batch->handles[at]))
            record_unknown_completion();
    } else if (UNLIKELY(request_is_persistent(live))) {
        complete_persistent(span, batch, at, live, status, ended);
    } else {
        record_completion(span, live, status, ended);
        request_release(span->thread, live);
    }
}

void complete_at(const struct span *span, const struct batch *batch, int at, const MPI_Status *status, enum spool_ended ended)
{
    struct spool_live *live;
    if (UNLIKELY(batch->is_detached)) {
        live = batch->detached[at];
        batch->detached[at] = NULL;
    } else {
        live = take(batch->thread, batch->handles[at], variable_at(batch, at));
    }
    end_taken(span, batch, at, live, status, ended);
}

/* All of them; most have nothing but a row: these lines are what programs with many messages pay. */
static void end_all(const struct span *span, const struct batch *batch, enum spool_ended ended)
{
    struct thread *t = span->thread;
    const struct batch own = *batch; /* no store of a record can be into this one */
    struct ending ending = ending_of(span, ended);
    for (int i = 0; i < own.count; i++) {
        MPI_Status copy;
        const MPI_Status *status = status_at(&own, i, &copy);
        struct spool_live *live = NULL;
        if (LIKELY(has_room(&ending) && !own.is_detached))
            live = request_take_plain(&t->index, request_key(own.handles[i]), variable_at(&own, i), ending.origin);
        if (LIKELY(live && put_plainly(&ending, live, status))) {
            request_release_own(t, live);
            continue;
        }
        if (live)
            end_taken(span, batch, i, live, status, ended);
        else
            complete_at(span, batch, i, status, ended);
        ending = ending_of(span, ended);
    }
}

void completing_call_done(struct span *span, int completes_known)
{
    if (UNLIKELY(recorder_state == RECORDER_PAUSED) && !completes_known)
        record_nothing(span);
    else
        record_call(span, NULL, NULL);
}

void complete_one(struct span *span, const struct batch *batch, int at, const MPI_Status *status, int error,
                  enum spool_ended ended)
{
    int over = LIKELY(error == MPI_SUCCESS) || (is_nulled(batch, at) && !is_null_request(batch->handles[at]));
    completing_call_done(span, over && (recorder_state == RECORDER_ON || batch_request(batch, at)));
    if (over)
        complete_at(span, batch, at, error == MPI_SUCCESS ? status : NULL, error == MPI_SUCCESS ? ended : SPOOL_FAILED);
}

/* With MPI_ERR_IN_STATUS: whether the request at a place is over (MPI-4.1 3.7.5). Handles of persistent ones stay. */
static inline int is_over(const struct batch *batch, int at, const MPI_Status *status, int error)
{
    if (is_null_request(batch->handles[at]))
        return 0;
    return is_nulled(batch, at) || (error == MPI_ERR_IN_STATUS && status && status->MPI_ERROR != MPI_ERR_PENDING);
}

static void record_and_end(struct span *span, const struct batch *batch, int error, enum spool_ended ended)
{
    completing_call_done(span, span->completed != 0);
    if (LIKELY(error == MPI_SUCCESS)) {
        end_all(span, batch, ended);
        return;
    }
    for (int i = 0; i < batch->count; i++) {
        MPI_Status copy;
        const MPI_Status *status = status_at(batch, i, &copy);
        if (is_over(batch, i, status, error))
            complete_at(span, batch, i, error == MPI_ERR_IN_STATUS ? status : NULL,
                        error == MPI_ERR_IN_STATUS && status && status->MPI_ERROR == MPI_SUCCESS ? ended : SPOOL_FAILED);
    }
}

/* The same where all have been detached and nothing has a row. */
static void end_all_summed(struct span *span, const struct batch *batch, enum spool_ended ended)
{
    completing_call_done(span, span->completed != 0);
    for (int i = 0; i < batch->count; i++) {
        MPI_Status copy;
        const MPI_Status *status = status_at(batch, i, &copy);
        struct spool_live *live = batch->detached[i];
        if (UNLIKELY(!live || request_is_persistent(live))) {
            complete_at(span, batch, i, status, ended);
            continue;
        }
        batch->detached[i] = NULL;
        record_completion_summed(span, live, status, ended);
        request_release(span->thread, live);
    }
}

/* How many requests share the call's time has to be known before they are summed up. Each is looked up once: where all have ended,
 * they are taken out of the index for that. */
static __attribute__((noinline)) void complete_all_counted(struct span *span, const struct batch *batch, int error, enum spool_ended ended)
{
    struct batch own = *batch;
    if (error == MPI_SUCCESS && !own.is_detached)
        span->completed = batch_detach(&own);
    else
        span->completed = batch_known(&own);
    span->share = span->completed ? (span->end - span->begin) / span->completed : 0;
    if (LIKELY(error == MPI_SUCCESS && span->thread->stream.full))
        end_all_summed(span, &own, ended);
    else
        record_and_end(span, &own, error, ended);
}

void complete_all(struct span *span, const struct batch *batch, int error, enum spool_ended ended)
{
    if (UNLIKELY(sample_leaves_out || span->thread->stream.full || recorder_state == RECORDER_PAUSED))
        complete_all_counted(span, batch, error, ended);
    else
        record_and_end(span, batch, error, ended);
}

/* Whether indices that a call reports are counted from `base`: they are places of requests, and every request that has
 * been nulled is among them. */
static inline int counts_from(const struct batch *batch, const int *reported, int count, int base)
{
    int nulled = 0, nulled_reported = 0;
    for (int i = 0; i < count; i++) {
        int at = reported[i] - base;
        if (at < 0 || at >= batch->count || is_null_request(batch->handles[at]))
            return 0;
        nulled_reported += is_nulled(batch, at);
    }
    for (int i = 0; i < batch->count; i++)
        nulled += !is_null_request(batch->handles[i]) && is_nulled(batch, i);
    return nulled == nulled_reported;
}

/* Persistent requests are not nulled, so that some calls fit both bases: then it is what it was before. */
int first_index(const struct batch *batch, const int *reported, int count)
{
    static int of_fortran = 1;
    if (LIKELY(!batch->fortran))
        return 0;
    int base = __atomic_load_n(&of_fortran, __ATOMIC_RELAXED);
    if (UNLIKELY(!counts_from(batch, reported, count, base) && counts_from(batch, reported, count, 1 - base))) {
        base = 1 - base;
        __atomic_store_n(&of_fortran, base, __ATOMIC_RELAXED);
    }
    return base;
}

void complete_some(struct span *span, const struct batch *batch, int completed, const int *indices, int first, int error,
                   enum spool_ended ended)
{
    if (UNLIKELY(sample_leaves_out || span->thread->stream.full))
        span->completed = completed > 0 ? (unsigned)completed : 1;
    completing_call_done(span, 1);
    for (int i = 0; i < completed; i++) {
        MPI_Status copy;
        const MPI_Status *status = status_at(batch, i, &copy);
        int failed = error != MPI_SUCCESS && (!status || status->MPI_ERROR != MPI_SUCCESS);
        complete_at(span, batch, indices[i] - first, status, failed ? SPOOL_FAILED : ended);
    }
}
