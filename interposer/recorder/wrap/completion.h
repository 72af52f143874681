/*
 * What calls that complete, test or free requests have in common; the C and the Fortran wrappers are made of it.
 *
 * MPI nulls the handles of requests that it ends, so they are copied before the call, and converted where they are
 * Fortran's. Statuses that the application did not want are taken all the same: only they tell what a receive got.
 */
#ifndef LAPSCOPE_COMPLETION_H
#define LAPSCOPE_COMPLETION_H

#include "../record/request.h"
#include "wrap.h"

int fortran_ignores(const void *status); /* wrap_fortran.h */

static inline int is_null_request(MPI_Request handle)
{
    return handle == mpi.request_null;
}

/* --- the requests of a call --------------------------------------------------------------------------------------- */

struct batch {
    struct thread *thread;
    int count;
    int fortran;                   /* variables and statuses are Fortran's */
    const MPI_Request *handles;    /* as they were before the call */
    const void *variables;         /* the application's array */
    void *statuses;                /* the application's, or our own; NULL where there are none */
    struct spool_live **detached;  /* valid with is_detached; persistent ones only found: see request.h */
    int is_detached;               /* under MPI_THREAD_MULTIPLE before the call, of sums at its end */
};

static inline const void *variable_at(const struct batch *batch, int at)
{
    return request_variable((struct request_array){batch->variables, batch->fortran}, at);
}

/* Whether the application's variable holds no request now. */
static inline int is_nulled(const struct batch *batch, int at)
{
    return is_null_request(request_handle((struct request_array){batch->variables, batch->fortran}, at));
}

/* The status at a place, aligned; NULL where there is none. */
static inline const MPI_Status *status_at(const struct batch *batch, int at, MPI_Status *copy)
{
    if (LIKELY(!batch->fortran))
        return batch->statuses ? (const MPI_Status *)batch->statuses + at : NULL;
    if (!batch->statuses || fortran_ignores(batch->statuses))
        return NULL;
    memcpy(copy, (const char *)batch->statuses + (size_t)at * sizeof *copy, sizeof *copy);
    return copy;
}

static inline struct spool_live *take(struct thread *t, MPI_Request handle, const void *variable)
{
    return is_null_request(handle) ? NULL : request_take(t, request_key(handle), variable);
}

/* Returns how many are active. */
static inline unsigned batch_detach(struct batch *batch)
{
    unsigned active = 0;
    batch->is_detached = 1;
    for (int i = 0; i < batch->count; i++) {
        struct spool_live *live = take(batch->thread, batch->handles[i], variable_at(batch, i));
        batch->detached[i] = live;
        active += live && request_is_active(live);
    }
    return active;
}

/* Room for what a call of `count` requests needs, the handles not filled in; returns 0 when there is no memory: the
 * call then goes unrecorded. `wants_none`: the application wants no statuses. */
static inline int batch_prepare(struct batch *batch, struct thread *t, int count, const void *variables, void *statuses,
                                int wants_none)
{
    size_t n = count > 0 ? (size_t)count : 0;
    char *scratch = thread_scratch(t, n * (sizeof *batch->detached + sizeof *batch->handles + sizeof(MPI_Status)) + 64);
    if (!scratch)
        return 0;
    struct spool_live **detached = (struct spool_live **)scratch;
    MPI_Status *own = (MPI_Status *)(detached + n);
    *batch = (struct batch){.thread = t,
                            .count = (int)n,
                            .handles = (MPI_Request *)(own + n),
                            .variables = variables,
                            .statuses = wants_none ? own : statuses,
                            .detached = detached};
    return 1;
}

static inline int batch_take(struct batch *batch, struct thread *t, int count, const MPI_Request *requests,
                             MPI_Status *statuses)
{
    if (!batch_prepare(batch, t, count, requests, statuses, statuses == MPI_STATUSES_IGNORE))
        return 0;
    memcpy((MPI_Request *)batch->handles, requests, (size_t)batch->count * sizeof *requests);
    if (recorder_multiple)
        batch_detach(batch);
    return 1;
}

static inline int batch_take_fortran(struct batch *batch, struct thread *t, MPI_Fint count, const MPI_Fint *requests,
                                     MPI_Fint *statuses)
{
    if (!batch_prepare(batch, t, count, requests, statuses, fortran_ignores(statuses)))
        return 0;
    batch->fortran = 1;
    for (int i = 0; i < batch->count; i++)
        ((MPI_Request *)batch->handles)[i] = request_f2c(requests[i]);
    if (recorder_multiple)
        batch_detach(batch);
    return 1;
}

/* The same for one request, whose copy and place the caller provides. */
static inline void batch_take_one(struct batch *batch, struct thread *t, const MPI_Request *copy, const void *variable,
                                  void *status, int fortran, struct spool_live **detached)
{
    *batch = (struct batch){t, 1, fortran, copy, variable, status, detached, 0};
    if (recorder_multiple)
        batch_detach(batch);
}

/* The call frees its request: MPI may give a persistent one's handle to the next request at once. */
static inline void batch_frees(const struct batch *batch)
{
    if (recorder_multiple && batch->detached[0])
        request_detach(request_key(batch->handles[0]), batch->detached[0]);
}

/* The call begins: its requests are what it waits for. */
static inline ALWAYS_INLINE void batch_begin(struct span *span, const struct batch *batch, enum call call, struct caller caller)
{
    struct request_array requests = {batch->variables, batch->fortran};
    span_begin_completing(span, batch->thread, call, caller, requests, batch->count);
}

/* The active request at a place of the batch, or NULL. */
static inline struct spool_live *batch_request(const struct batch *batch, int at)
{
    if (LIKELY(!batch->is_detached))
        return known_request(batch->thread, batch->handles[at], variable_at(batch, at));
    struct spool_live *live = batch->detached[at];
    return live && request_is_active(live) ? live : NULL;
}

static inline unsigned batch_known(const struct batch *batch)
{
    unsigned known = 0;
    for (int i = 0; i < batch->count; i++)
        known += batch_request(batch, i) != NULL;
    return known;
}

/* At the end of the call: what did not complete is put back. */
static inline void batch_return(const struct batch *batch)
{
    for (int i = 0; recorder_multiple && i < batch->count; i++)
        if (batch->detached[i])
            request_attach(request_key(batch->handles[i]), batch->detached[i]);
}

/* --- what a call completed (completion.c) ------------------------------------------------------------------------- */

/* The call's row: left out while MPI_Pcontrol(0) is in force and nothing known was completed. */
void completing_call_done(struct span *span, int completes_known);

/* The request at a place of the batch is over, without more ado. */
void complete_at(const struct span *span, const struct batch *batch, int at, const MPI_Status *status, enum spool_ended ended);

/* The request at one place of the batch was waited for or tested, and the call returned `error`. */
void complete_one(struct span *span, const struct batch *batch, int at, const MPI_Status *status, int error,
                  enum spool_ended ended);

/* All of a batch completed; after an error those that are over. */
void complete_all(struct span *span, const struct batch *batch, int error, enum spool_ended ended);

/* The entries of a batch that `indices` names, counted from `first`, completed, their statuses in that order. */
void complete_some(struct span *span, const struct batch *batch, int completed, const int *indices, int first, int error,
                   enum spool_ended ended);

/* What reported indices are counted from: 0 in C, 1 in Fortran, but 0 in mpi_f08 of MPICH 4.0. */
int first_index(const struct batch *batch, const int *reported, int count);

/* Whether a call of one index has reported a request, not MPI_UNDEFINED (which is negative, also one more than it). */
static inline int is_place(const struct batch *batch, const int *index)
{
    return *index >= 0 && *index <= batch->count;
}

/* What is left of a batch after a test was seen incomplete; `certain`: each of them, not only some one. */
static inline void note_unsuccessful_test(const struct span *span, const struct batch *batch, int certain)
{
    for (int i = 0; i < batch->count; i++) {
        struct spool_live *live = is_nulled(batch, i) ? NULL : batch_request(batch, i);
        if (live)
            record_incomplete(span, live, certain);
    }
}

/* --- after the real call: the words of calls.def ------------------------------------------------------------------ */

static inline void waited_one(struct span *span, const struct batch *batch, int error)
{
    MPI_Status copy;
    complete_one(span, batch, 0, status_at(batch, 0, &copy), error, SPOOL_WAITED);
}

static inline void waited_all(struct span *span, const struct batch *batch, int error)
{
    complete_all(span, batch, error, SPOOL_WAITED);
}

static inline void waited_any(struct span *span, const struct batch *batch, const int *index, int error)
{
    MPI_Status copy;
    if (error != MPI_SUCCESS)
        complete_all(span, batch, error, SPOOL_WAITED); /* the one that failed has been nulled */
    else if (is_place(batch, index))
        complete_one(span, batch, *index - first_index(batch, index, 1), status_at(batch, 0, &copy), error, SPOOL_WAITED);
    else
        completing_call_done(span, 0);
}

static inline int is_usable(int completed, int error)
{
    return (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS) && completed != MPI_UNDEFINED;
}

static inline void waited_some(struct span *span, const struct batch *batch, int completed, const int *indices, int error)
{
    if (is_usable(completed, error))
        complete_some(span, batch, completed, indices, first_index(batch, indices, completed), error, SPOOL_WAITED);
    else
        completing_call_done(span, 0);
}

static inline void tested_one(struct span *span, const struct batch *batch, int flag, int error)
{
    if ((error != MPI_SUCCESS || flag) && batch_request(batch, 0)) {
        MPI_Status copy;
        complete_one(span, batch, 0, status_at(batch, 0, &copy), error, SPOOL_TESTED);
        return;
    }
    record_unsuccessful_test(span);
    note_unsuccessful_test(span, batch, 1);
}

static inline void tested_all(struct span *span, const struct batch *batch, int flag, int error)
{
    if ((error != MPI_SUCCESS || flag) && batch_known(batch) != 0) {
        complete_all(span, batch, error, SPOOL_TESTED);
        return;
    }
    record_unsuccessful_test(span);
    note_unsuccessful_test(span, batch, batch->count == 1);
}

static inline void tested_any(struct span *span, const struct batch *batch, int flag, const int *index, int error)
{
    MPI_Status copy;
    int hit = error == MPI_SUCCESS && flag && is_place(batch, index);
    int at = hit ? *index - first_index(batch, index, 1) : -1;
    if (error != MPI_SUCCESS && batch_known(batch) != 0) {
        complete_all(span, batch, error, SPOOL_TESTED);
    } else if (hit && batch_request(batch, at)) {
        complete_one(span, batch, at, status_at(batch, 0, &copy), error, SPOOL_TESTED);
    } else {
        record_unsuccessful_test(span);
        if (!hit)
            note_unsuccessful_test(span, batch, 1);
    }
}

static inline void tested_some(struct span *span, const struct batch *batch, int completed, const int *indices, int error)
{
    int usable = is_usable(completed, error), known = 0;
    int first = usable ? first_index(batch, indices, completed) : 0;
    for (int i = 0; usable && i < completed && !known; i++)
        known = batch_request(batch, indices[i] - first) != NULL;
    if (known)
        complete_some(span, batch, completed, indices, first, error, SPOOL_TESTED);
    else
        record_unsuccessful_test(span);
    if (usable)
        note_unsuccessful_test(span, batch, 1);
}

static inline void freed(struct span *span, const struct batch *batch, int error)
{
    completing_call_done(span, batch_request(batch, 0) != NULL);
    if (error == MPI_SUCCESS)
        complete_at(span, batch, 0, NULL, SPOOL_FREED);
}

static inline void cancelled(struct span *span, MPI_Request handle, const void *variable, int error)
{
    struct spool_live *live = known_request(span->thread, handle, variable);
    completing_call_done(span, live != NULL);
    if (error == MPI_SUCCESS && live)
        live->flags |= SPOOL_LIVE_CANCELLED;
}

/* --- MPI_Request_get_status and its forms end nothing --- */

static inline void looked_at(const struct span *span, MPI_Request handle, const void *variable, int complete)
{
    struct spool_live *live = known_request(span->thread, handle, variable);
    if (live && complete)
        record_seen_complete(span, live);
    else if (live)
        record_incomplete(span, live, 1);
}

static inline void looked_at_place(const struct span *span, struct request_array requests, int at, int complete)
{
    looked_at(span, request_handle(requests, at), request_variable(requests, at), complete);
}

static inline void looked_at_one(struct span *span, MPI_Request handle, const void *variable, int flag, int error)
{
    record_unsuccessful_test(span);
    if (error == MPI_SUCCESS)
        looked_at(span, handle, variable, flag);
}

static inline void looked_at_any(struct span *span, struct request_array requests, int count, int flag, int index, int error)
{
    record_unsuccessful_test(span);
    for (int i = 0; error == MPI_SUCCESS && i < count; i++)
        if (!flag || i == index)
            looked_at_place(span, requests, i, flag);
}

static inline void looked_at_all(struct span *span, struct request_array requests, int count, int flag, int error)
{
    record_unsuccessful_test(span);
    for (int i = 0; error == MPI_SUCCESS && (flag || count == 1) && i < count; i++)
        looked_at_place(span, requests, i, flag);
}

static inline void looked_at_some(struct span *span, struct request_array requests, int completed, const int *indices,
                                  int first, int error)
{
    record_unsuccessful_test(span);
    for (int i = 0; error == MPI_SUCCESS && completed != MPI_UNDEFINED && i < completed; i++)
        looked_at_place(span, requests, indices[i] - first, 1);
}

#endif
