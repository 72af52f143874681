/*
 * What the wrappers call after the real call: one function for each kind of thing that happened. None of them
 * allocates, locks or calls the system but on first sight of something new.
 */
#ifndef LAPSCOPE_RECORD_H
#define LAPSCOPE_RECORD_H

#include "../base/mpi_api.h"
#include "callsite.h"
#include "entry.h"
#include "message.h"
#include "operation.h"

/* A call under way: from span_begin() to one of the call_end functions, or none when it is not to be recorded. */
struct span {
    struct thread *thread;
    struct callsite *site;
    uint64_t begin, end;         /* ticks */
    unsigned completed;          /* requests that share this call's time */
    uint64_t share;              /* the part of each, where that is known already; else 0 */
    enum call call;
};

/* Counts a record that there is no room for. */
void record_lost(void);

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* What record_post does: of calls in whose wrappers post_again is not worth its room; and of a post that is not one once more. */
struct spool_live *record_post_apart(struct thread *t, enum call call, struct caller caller, uint64_t begin, uint64_t end,
                                     struct message *message, MPI_Request handle, const void *variable);
struct spool_live *record_post_slowly(struct thread *t, enum call call, struct caller caller, uint64_t begin, uint64_t end,
                                      struct message *message, MPI_Request handle, const void *variable);

/* When the request completes, there will be a communicator's handle at that address. */
void request_makes_comm(struct spool_live *live, const void *handle, int fortran);

/* A persistent request was made by the call in `span`: its row, and an entry that is not active yet, which it returns. */
struct spool_live *record_init(struct span *span, struct message *message, MPI_Request handle, const void *variable);

/* A partitioned one has that many partitions; so many were made ready; the bytes of some of them, and its communicator. */
void record_partitions(struct thread *t, MPI_Request handle, int partitions);
void record_ready(struct thread *t, MPI_Request handle, int partitions);
uint64_t partition_bytes(struct thread *t, MPI_Request handle, int partitions);
struct message over_request(struct thread *t, MPI_Request handle);

/* An array of the application's requests. */
struct request_array {
    const void *variables;       /* MPI_Request, or MPI_Fint */
    int fortran;
};

static inline const void *request_variable(struct request_array requests, int at)
{
    return requests.fortran ? (const void *)((const MPI_Fint *)requests.variables + at)
                            : (const void *)((const MPI_Request *)requests.variables + at);
}

static inline MPI_Request request_handle(struct request_array requests, int at)
{
    const void *variable = request_variable(requests, at);
    return requests.fortran ? request_f2c(*(const MPI_Fint *)variable) : *(const MPI_Request *)variable;
}

/* A persistent request was started. */
void record_start(struct thread *t, enum call call, struct caller caller, uint64_t begin, uint64_t end, MPI_Request handle,
                  const void *variable);

/* Several were, one behind the other: each has its share of the time. */
void record_startall(struct thread *t, struct caller caller, uint64_t begin, uint64_t end, int count,
                     struct request_array requests);

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Starts a blocking or completing call: finds its call path and, so that a killed process shows what it was waiting
 * for, says in the spool that this thread is in it. `message` may be NULL; its bytes are not looked at. */
void span_begin(struct span *span, struct thread *t, enum call call, struct caller caller, const struct message *message);

/* The same for a call that is given requests to end: it says which. */
void span_begin_completing(struct span *span, struct thread *t, enum call call, struct caller caller,
                           struct request_array requests, int count);

/* Stamps the end. To be called directly behind the real call. */
static inline void span_stamp(struct span *span)
{
    span->end = stamp_end(span->thread);
}

/* One call row. NULL for what has no message of its own, and for calls that failed: then nothing of their arguments can
 * be relied on. `receive` is the receiving half of MPI_Sendrecv. */
void record_call(struct span *span, const struct exchange *exchange, const struct exchange *receive);

/* The row of a call with a message. `status`: of what was received, read or written, else NULL. Leaves in `message`
 * what came. */
void span_done(struct span *span, struct message *message, const MPI_Status *status, int error);

/* Whether an error says that a message was too long for its receive, which has received it (MPI-4.1 3.2.4). */
int is_truncation(int error);

/* The row of a completing call that was only summed up, after all, as a request that it ended has one; returns 0 when there is
 * no room. */
int record_call_after_all(const struct span *span);

/* What a receive's status tells of. */
struct message message_received(const struct message *posted, const MPI_Status *status);

/* A call that is not worth a row; its time still counts as time inside MPI. */
void record_nothing(struct span *span);

/* --- completions -------------------------------------------------------------------------------------------------- */

/* The active request behind a handle; NULL for null handles, inactive persistent requests and requests whose post was
 * not seen. */
struct spool_live *known_request(struct thread *t, MPI_Request handle, const void *variable);

/* Counts an unsuccessful test at its call site. */
void record_unsuccessful_test(struct span *span);
void record_incomplete(const struct span *span, struct spool_live *live, int certain);

/* A test that saw a request complete without ending it. */
void record_seen_complete(const struct span *span, struct spool_live *live);

/* MPI_Grequest_complete: from now on tests will find it complete. */
void record_completable(struct thread *t, MPI_Request handle);

/* Bytes of sends under way to each world rank; called once, when the size is known. Returns 0 when out of memory. */
int record_init_world(int world_size);

#endif
