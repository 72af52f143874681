/*
 * Calls that complete, test, free or cancel requests.
 *
 * A null pointer where MPI wants one goes straight to MPI, whose error it is.
 *
 * MPI nulls the handles of requests that it ends, so arrays of them are copied before the call. Statuses that the
 * application did not want are taken all the same: only they tell what a receive got.
 */
#include "request.h"
#include "wrappers.h"

static inline MPI_Status *or_own(MPI_Status *status, MPI_Status *own)
{
    return status == MPI_STATUS_IGNORE ? own : status;
}

static int is_null(MPI_Request handle)
{
    return handle == mpi.request_null;
}

/* --- the requests of a call --------------------------------------------------------------------------------------- */

struct batch {
    struct thread *thread;
    int count;
    const MPI_Request *handles;    /* copied before the call */
    const MPI_Request *variables;  /* the application's array */
    MPI_Status *statuses;          /* the application's, or our own */
    struct spool_live **detached;  /* under MPI_THREAD_MULTIPLE: see request.h */
};

static inline struct spool_live *take(struct thread *t, MPI_Request handle, const MPI_Request *variable)
{
    return is_null(handle) ? NULL : request_take(t, request_key(handle), variable);
}

static void batch_detach(struct batch *batch)
{
    for (int i = 0; i < batch->count; i++)
        batch->detached[i] = take(batch->thread, batch->handles[i], &batch->variables[i]);
}

/* Returns 0 when there is no memory: the call then goes unrecorded. */
static int batch_take(struct batch *batch, struct thread *t, int count, const MPI_Request *requests, MPI_Status *statuses)
{
    size_t n = count > 0 ? (size_t)count : 0;
    char *scratch = thread_scratch(t, n * (sizeof *batch->detached + sizeof *requests + sizeof *statuses) + 64);
    if (!scratch)
        return 0;
    struct spool_live **detached = (struct spool_live **)scratch;
    MPI_Status *own = (MPI_Status *)(detached + n);
    MPI_Request *copy = (MPI_Request *)(own + n);
    memcpy(copy, requests, n * sizeof *copy);
    *batch = (struct batch){t, (int)n, copy, requests, statuses == MPI_STATUSES_IGNORE ? own : statuses, detached};
    if (recorder_multiple)
        batch_detach(batch);
    return 1;
}

/* The same for one request, whose copy and place the caller provides. */
static void batch_take_one(struct batch *batch, struct thread *t, const MPI_Request *copy, const MPI_Request *request,
                           MPI_Status *status, struct spool_live **detached)
{
    *batch = (struct batch){t, 1, copy, request, status, detached};
    if (recorder_multiple)
        batch_detach(batch);
}

/* The known request at a place of the batch, or NULL. */
static struct spool_live *batch_request(const struct batch *batch, int at)
{
    return recorder_multiple ? batch->detached[at]
                             : known_request(batch->thread, batch->handles[at], &batch->variables[at]);
}

static unsigned batch_known(const struct batch *batch)
{
    unsigned known = 0;
    for (int i = 0; i < batch->count; i++)
        known += batch_request(batch, i) != NULL;
    return known;
}

/* At the end of the call: what did not complete is put back. */
static void batch_return(const struct batch *batch)
{
    for (int i = 0; recorder_multiple && i < batch->count; i++)
        if (batch->detached[i])
            request_attach(request_key(batch->handles[i]), batch->detached[i]);
}

static inline void complete_at(const struct span *span, const struct batch *batch, int at, const MPI_Status *status,
                               enum spool_ended ended)
{
    struct spool_live *live;
    if (UNLIKELY(recorder_multiple)) {
        live = batch->detached[at];
        batch->detached[at] = NULL;
    } else {
        live = take(batch->thread, batch->handles[at], &batch->variables[at]);
    }
    if (LIKELY(live != NULL))
        record_completion(span, live, status, ended);
    else if (!is_null(batch->handles[at]))
        record_unknown_completion();
}

/* --- what a call completed ---------------------------------------------------------------------------------------- */

/* The call's row: left out while MPI_Pcontrol(0) is in force and nothing known was completed. */
static void record_completing_call(struct span *span, int completes_known)
{
    if (UNLIKELY(recorder_state == RECORDER_PAUSED) && !completes_known)
        record_nothing(span);
    else
        record_call(span, NULL, NULL);
}

/* The request at one place of the batch was waited for or tested, and the call returned `error`. */
static void complete_one(struct span *span, const struct batch *batch, int at, const MPI_Status *status, int error,
                         enum spool_ended ended)
{
    int over = error == MPI_SUCCESS || (is_null(batch->variables[at]) && !is_null(batch->handles[at]));
    record_completing_call(span, over && (recorder_state == RECORDER_ON || batch_request(batch, at)));
    if (over)
        complete_at(span, batch, at, error == MPI_SUCCESS ? status : NULL, error == MPI_SUCCESS ? ended : SPOOL_FAILED);
}

/* All of a batch completed; with MPI_ERR_IN_STATUS those whose handles MPI has nulled did (MPI-4.1 3.7.5). */
static void complete_all(struct span *span, const struct batch *batch, int error, enum spool_ended ended)
{
    if (UNLIKELY(span->thread->stream.full || recorder_state == RECORDER_PAUSED))
        span->completed = batch_known(batch);
    record_completing_call(span, span->completed != 0);
    for (int i = 0; i < batch->count; i++) {
        const MPI_Status *status = &batch->statuses[i];
        if (LIKELY(error == MPI_SUCCESS))
            complete_at(span, batch, i, status, ended);
        else if (is_null(batch->variables[i]) && !is_null(batch->handles[i]))
            complete_at(span, batch, i, error == MPI_ERR_IN_STATUS ? status : NULL,
                        error == MPI_ERR_IN_STATUS && status->MPI_ERROR == MPI_SUCCESS ? ended : SPOOL_FAILED);
    }
}

/* The entries of a batch that `indices` names completed, their statuses in that order. */
static void complete_some(struct span *span, const struct batch *batch, int completed, const int *indices, int error,
                          enum spool_ended ended)
{
    if (UNLIKELY(span->thread->stream.full))
        span->completed = completed > 0 ? (unsigned)completed : 1;
    record_completing_call(span, 1);
    for (int i = 0; i < completed; i++) {
        int failed = error != MPI_SUCCESS && batch->statuses[i].MPI_ERROR != MPI_SUCCESS;
        complete_at(span, batch, indices[i], &batch->statuses[i], failed ? SPOOL_FAILED : ended);
    }
}

/* What is left of a batch after a test was seen incomplete; `certain`: each of them, not only some one. */
static void poll_rest(const struct span *span, const struct batch *batch, int certain)
{
    for (int i = 0; i < batch->count; i++) {
        struct spool_live *live = is_null(batch->variables[i]) ? NULL : batch_request(batch, i);
        if (live)
            record_incomplete(span, live, certain);
    }
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

int wrap_MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(MPI_Wait)(request, status);
    MPI_Request handle = *request;
    MPI_Status own;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    status = or_own(status, &own);
    batch_take_one(&batch, t, &handle, request, status, &detached);
    call_begin(&span, t, CALL_MPI_Wait, CALLER(), NULL);
    int error = REAL(MPI_Wait)(request, status);
    call_stamp(&span);
    complete_one(&span, &batch, 0, status, error, SPOOL_WAITED);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(MPI_Waitall)(count, requests, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Waitall, CALLER(), NULL);
    int error = REAL(MPI_Waitall)(count, requests, batch.statuses);
    call_stamp(&span);
    complete_all(&span, &batch, error, SPOOL_WAITED);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, MPI_STATUSES_IGNORE)) {
        int error = REAL(MPI_Waitany)(count, requests, index, status);
        if (t)
            leave(t);
        return error;
    }
    MPI_Status own;
    struct span span;
    status = or_own(status, &own);
    call_begin(&span, t, CALL_MPI_Waitany, CALLER(), NULL);
    int error = REAL(MPI_Waitany)(count, requests, index, status);
    call_stamp(&span);
    if (error == MPI_SUCCESS && *index != MPI_UNDEFINED)
        complete_one(&span, &batch, *index, status, error, SPOOL_WAITED);
    else if (error != MPI_SUCCESS)
        complete_all(&span, &batch, error, SPOOL_WAITED); /* the one that failed has been nulled */
    else
        record_completing_call(&span, 0);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Waitsome(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(MPI_Waitsome)(count, requests, completed, indices, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Waitsome, CALLER(), NULL);
    int error = REAL(MPI_Waitsome)(count, requests, completed, indices, batch.statuses);
    call_stamp(&span);
    if ((error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS) && *completed != MPI_UNDEFINED)
        complete_some(&span, &batch, *completed, indices, error, SPOOL_WAITED);
    else
        record_completing_call(&span, 0);
    batch_return(&batch);
    leave(t);
    return error;
}

/* --- testing ------------------------------------------------------------------------------------------------------ */

int wrap_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(MPI_Test)(request, flag, status);
    MPI_Request handle = *request;
    MPI_Status own;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    status = or_own(status, &own);
    batch_take_one(&batch, t, &handle, request, status, &detached);
    call_begin(&span, t, CALL_MPI_Test, CALLER(), NULL);
    int error = REAL(MPI_Test)(request, flag, status);
    call_stamp(&span);
    if ((error != MPI_SUCCESS || *flag) && batch_request(&batch, 0)) {
        complete_one(&span, &batch, 0, status, error, SPOOL_TESTED);
    } else {
        record_poll(&span);
        poll_rest(&span, &batch, 1);
    }
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(MPI_Testall)(count, requests, flag, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Testall, CALLER(), NULL);
    int error = REAL(MPI_Testall)(count, requests, flag, batch.statuses);
    call_stamp(&span);
    if ((error != MPI_SUCCESS || *flag) && batch_known(&batch) != 0) {
        complete_all(&span, &batch, error, SPOOL_TESTED);
    } else {
        record_poll(&span);
        poll_rest(&span, &batch, count == 1);
    }
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, MPI_STATUSES_IGNORE)) {
        int error = REAL(MPI_Testany)(count, requests, index, flag, status);
        if (t)
            leave(t);
        return error;
    }
    MPI_Status own;
    struct span span;
    status = or_own(status, &own);
    call_begin(&span, t, CALL_MPI_Testany, CALLER(), NULL);
    int error = REAL(MPI_Testany)(count, requests, index, flag, status);
    call_stamp(&span);
    int hit = error == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED;
    if (error != MPI_SUCCESS && batch_known(&batch) != 0) {
        complete_all(&span, &batch, error, SPOOL_TESTED);
    } else if (hit && batch_request(&batch, *index)) {
        complete_one(&span, &batch, *index, status, error, SPOOL_TESTED);
    } else {
        record_poll(&span);
        if (!hit)
            poll_rest(&span, &batch, 1);
    }
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Testsome(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(MPI_Testsome)(count, requests, completed, indices, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Testsome, CALLER(), NULL);
    int error = REAL(MPI_Testsome)(count, requests, completed, indices, batch.statuses);
    call_stamp(&span);
    int usable = (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS) && *completed != MPI_UNDEFINED;
    int known = 0;
    for (int i = 0; usable && i < *completed && !known; i++)
        known = batch_request(&batch, indices[i]) != NULL;
    if (known)
        complete_some(&span, &batch, *completed, indices, error, SPOOL_TESTED);
    else
        record_poll(&span);
    if (usable)
        poll_rest(&span, &batch, 1);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Request_get_status)(request, flag, status);
    struct span span;
    call_begin(&span, t, CALL_MPI_Request_get_status, CALLER(), NULL);
    int error = REAL(MPI_Request_get_status)(request, flag, status);
    call_stamp(&span);
    record_poll(&span);
    struct spool_live *live = known_request(t, request, NULL); /* it comes by value: its variable is not known */
    if (error == MPI_SUCCESS && live && *flag)
        record_seen_complete(&span, live);
    else if (error == MPI_SUCCESS && live)
        record_incomplete(&span, live, 1);
    leave(t);
    return error;
}

/* --- giving up ---------------------------------------------------------------------------------------------------- */

int wrap_MPI_Request_free(MPI_Request *request)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(MPI_Request_free)(request);
    MPI_Request handle = *request;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    batch_take_one(&batch, t, &handle, request, NULL, &detached);
    call_begin(&span, t, CALL_MPI_Request_free, CALLER(), NULL);
    int error = REAL(MPI_Request_free)(request);
    call_stamp(&span);
    record_completing_call(&span, batch_request(&batch, 0) != NULL);
    if (error == MPI_SUCCESS)
        complete_at(&span, &batch, 0, NULL, SPOOL_FREED);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_MPI_Cancel(MPI_Request *request)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(MPI_Cancel)(request);
    struct span span;
    call_begin(&span, t, CALL_MPI_Cancel, CALLER(), NULL);
    int error = REAL(MPI_Cancel)(request);
    call_stamp(&span);
    struct spool_live *live = known_request(t, *request, request);
    record_completing_call(&span, live != NULL);
    if (error == MPI_SUCCESS && live)
        live->flags |= SPOOL_LIVE_CANCELLED;
    leave(t);
    return error;
}
