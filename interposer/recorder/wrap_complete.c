/*
 * Calls that complete, test, free or cancel requests.
 *
 * MPI nulls the handles of requests that it ends, so arrays of them are copied before the call. Statuses that the
 * application did not want are taken all the same: only they tell what a receive got.
 */
#include "wrappers.h"

static inline MPI_Status *or_own(MPI_Status *status, MPI_Status *own)
{
    return status == MPI_STATUS_IGNORE ? own : status;
}

/* The application's arrays, safe from MPI's nulling. */
struct batch {
    int count;
    const MPI_Request *handles;    /* copied before the call */
    const MPI_Request *variables;  /* the application's array */
    MPI_Status *statuses;          /* the application's, or our own */
};

/* Returns 0 when there is no memory: the call then goes unrecorded. */
static int batch_take(struct batch *batch, struct thread *t, int count, const MPI_Request *requests, MPI_Status *statuses)
{
    size_t n = count > 0 ? (size_t)count : 0;
    char *scratch = thread_scratch(t, n * (sizeof *requests + sizeof *statuses) + 64);
    if (!scratch)
        return 0;
    MPI_Status *own = (MPI_Status *)scratch;
    MPI_Request *copy = (MPI_Request *)(own + n);
    memcpy(copy, requests, n * sizeof *copy);
    *batch = (struct batch){(int)n, copy, requests, statuses == MPI_STATUSES_IGNORE ? own : statuses};
    return 1;
}

static int is_null(MPI_Request handle)
{
    return handle == mpi.request_null;
}

static unsigned batch_known(const struct batch *batch, struct thread *t)
{
    unsigned known = 0;
    for (int i = 0; i < batch->count; i++)
        known += known_request(t, batch->handles[i], &batch->variables[i]) != NULL;
    return known;
}

/* The call's row: left out while MPI_Pcontrol(0) is in force and nothing known was completed. */
static void record_completing_call(struct span *span, int completes_known)
{
    if (UNLIKELY(recorder_state == RECORDER_PAUSED) && !completes_known)
        record_nothing(span);
    else
        record_call(span, NULL, NULL);
}

/* One request's completing call returned. */
static void complete_one(struct span *span, MPI_Request handle, const MPI_Request *variable, const MPI_Status *status,
                         int error, enum spool_ended ended)
{
    int over = error == MPI_SUCCESS || (is_null(*variable) && !is_null(handle));
    record_completing_call(span, over && known_request(span->thread, handle, variable));
    if (over)
        record_completion(span, handle, variable, error == MPI_SUCCESS ? status : NULL,
                          error == MPI_SUCCESS ? ended : SPOOL_FAILED);
}

/* All of a batch completed; with MPI_ERR_IN_STATUS those whose handles MPI has nulled did (MPI-4.1 3.7.5). */
static void complete_all(struct span *span, const struct batch *batch, int error, enum spool_ended ended)
{
    if (UNLIKELY(span->thread->stream.full || recorder_state == RECORDER_PAUSED))
        span->completed = batch_known(batch, span->thread);
    record_completing_call(span, span->completed != 0);
    for (int i = 0; i < batch->count; i++) {
        const MPI_Status *status = &batch->statuses[i];
        if (LIKELY(error == MPI_SUCCESS))
            record_completion(span, batch->handles[i], &batch->variables[i], status, ended);
        else if (is_null(batch->variables[i]) && !is_null(batch->handles[i]))
            record_completion(span, batch->handles[i], &batch->variables[i], status,
                              error == MPI_ERR_IN_STATUS && status->MPI_ERROR == MPI_SUCCESS ? ended : SPOOL_FAILED);
    }
}

/* The entries of a batch that `indices` names completed, their statuses in that order. */
static void complete_some(struct span *span, const struct batch *batch, int completed, const int *indices, int error,
                          enum spool_ended ended)
{
    if (UNLIKELY(span->thread->stream.full))
        span->completed = (unsigned)completed;
    record_completing_call(span, 1);
    for (int i = 0; i < completed; i++) {
        int at = indices[i];
        int failed = error != MPI_SUCCESS && batch->statuses[i].MPI_ERROR != MPI_SUCCESS;
        record_completion(span, batch->handles[at], &batch->variables[at], &batch->statuses[i], failed ? SPOOL_FAILED : ended);
    }
}

/* What is left of a batch after a test was seen incomplete; `certain`: each of them, not only some one. */
static void poll_rest(const struct span *span, const struct batch *batch, int certain)
{
    for (int i = 0; i < batch->count; i++)
        if (!is_null(batch->variables[i]))
            record_incomplete(span, batch->handles[i], &batch->variables[i], certain);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

int wrap_MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Wait)(request, status);
    MPI_Request handle = *request;
    MPI_Status own;
    struct span span;
    status = or_own(status, &own);
    call_begin(&span, t, CALL_MPI_Wait, CALLER(), NULL);
    int error = REAL(MPI_Wait)(request, status);
    call_stamp(&span);
    complete_one(&span, handle, request, status, error, SPOOL_WAITED);
    leave(t);
    return error;
}

int wrap_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = enter();
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
    leave(t);
    return error;
}

int wrap_MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct batch batch;
    struct thread *t = enter();
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
        complete_one(&span, batch.handles[*index], &requests[*index], status, error, SPOOL_WAITED);
    else
        record_completing_call(&span, 0);
    leave(t);
    return error;
}

int wrap_MPI_Waitsome(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = enter();
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
    leave(t);
    return error;
}

/* --- testing ------------------------------------------------------------------------------------------------------ */

int wrap_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Test)(request, flag, status);
    MPI_Request handle = *request;
    MPI_Status own;
    struct span span;
    status = or_own(status, &own);
    call_begin(&span, t, CALL_MPI_Test, CALLER(), NULL);
    int error = REAL(MPI_Test)(request, flag, status);
    call_stamp(&span);
    if ((error != MPI_SUCCESS || *flag) && known_request(t, handle, request)) {
        complete_one(&span, handle, request, status, error, SPOOL_TESTED);
    } else {
        record_poll(&span);
        if (!is_null(*request))
            record_incomplete(&span, handle, request, 1);
    }
    leave(t);
    return error;
}

int wrap_MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = enter();
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
    if ((error != MPI_SUCCESS || *flag) && batch_known(&batch, t) != 0) {
        complete_all(&span, &batch, error, SPOOL_TESTED);
    } else {
        record_poll(&span);
        poll_rest(&span, &batch, count == 1);
    }
    leave(t);
    return error;
}

int wrap_MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct batch batch;
    struct thread *t = enter();
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
    if (hit && known_request(t, batch.handles[*index], &requests[*index])) {
        complete_one(&span, batch.handles[*index], &requests[*index], status, error, SPOOL_TESTED);
    } else {
        record_poll(&span);
        if (!hit)
            poll_rest(&span, &batch, 1);
    }
    leave(t);
    return error;
}

int wrap_MPI_Testsome(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = enter();
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
        known = known_request(t, batch.handles[indices[i]], &requests[indices[i]]) != NULL;
    if (known)
        complete_some(&span, &batch, *completed, indices, error, SPOOL_TESTED);
    else
        record_poll(&span);
    if (usable)
        poll_rest(&span, &batch, 1);
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
    if (error == MPI_SUCCESS && *flag) /* the handle comes by value: its variable is not known */
        record_seen_complete(&span, request, NULL);
    else if (error == MPI_SUCCESS)
        record_incomplete(&span, request, NULL, 1);
    leave(t);
    return error;
}

/* --- giving up ---------------------------------------------------------------------------------------------------- */

int wrap_MPI_Request_free(MPI_Request *request)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Request_free)(request);
    MPI_Request handle = *request;
    struct span span;
    call_begin(&span, t, CALL_MPI_Request_free, CALLER(), NULL);
    int error = REAL(MPI_Request_free)(request);
    call_stamp(&span);
    record_completing_call(&span, known_request(t, handle, request) != NULL);
    if (error == MPI_SUCCESS)
        record_completion(&span, handle, request, NULL, SPOOL_FREED);
    leave(t);
    return error;
}

int wrap_MPI_Cancel(MPI_Request *request)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Cancel)(request);
    struct span span;
    call_begin(&span, t, CALL_MPI_Cancel, CALLER(), NULL);
    int error = REAL(MPI_Cancel)(request);
    call_stamp(&span);
    record_completing_call(&span, known_request(t, *request, request) != NULL);
    if (error == MPI_SUCCESS)
        record_cancel(t, *request, request);
    leave(t);
    return error;
}
