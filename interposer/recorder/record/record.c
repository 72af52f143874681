#include "record.h"

#include "../spool/codec.h"
#include "comm.h"
#include "meter.h"
#include "operation.h"
#include "processor.h"
#include "tally.h"

void record_lost(void)
{
    __atomic_fetch_add(&spool_header()->lost_records, 1, __ATOMIC_RELAXED);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static const struct message no_message = {.kind = SPOOL_OTHER, .peer = SPOOL_NO_PEER, .tag = SPOOL_NO_TAG};
static const struct exchange no_exchange = {&no_message, &no_message};

static inline struct operation *exchange_operation(struct span *span, struct operation **last, const struct exchange *exchange)
{
    const struct comm *comm = exchange == &no_exchange ? NULL : comm_of_message(span->thread, exchange->posted);
    return operation_of(span->thread, last, span->call, span->site->path, comm, exchange->posted, exchange->actual);
}

/* The communicator and the datatype are not asked for anything yet: should they be invalid, then the application's own
 * call is the one to be told so. Hence its bytes are still 0. */
static inline struct operation *announced_operation(struct span *span, const struct message *message)
{
    struct thread *t = span->thread;
    const struct comm *comm = !message ? NULL : message->comm ? message->comm : comm_known(t, message->scope);
    struct operation **last = message ? &span->site->last_announced : &span->site->last_operation;
    message = message ? message : &no_message;
    return operation_of(t, last, span->call, span->site->path, comm, message, message);
}

/* Now and then: what the thread gets of a processor, and the clock, that a run which is killed can be put on the wall
 * clock. Every 10 ms, and some thousand times at the most for each doubling of the run time. */
static __attribute__((noinline, cold)) void look_around(struct thread *t, uint64_t now)
{
    const struct spool_file_header *header = spool_header();
    uint64_t pause = (uint64_t)(1e7 * header->nominal_ticks_per_ns), share = (now - header->first.ticks) / 4096;
    processor_look(t, now);
    spool_refresh_clock();
    t->next_look = now + (share > pause ? share : pause);
}

void span_begin(struct span *span, struct thread *t, enum call call, struct caller caller, const struct message *message)
{
    span->thread = t;
    span->call = call;
    span->site = callsite_of(t, caller);
    span->completed = 1;
    struct operation *operation = announced_operation(span, message);
    span->begin = stamp_begin(t);
    if (UNLIKELY(span->begin > t->next_look) && stamps_are_plain) {
        look_around(t, span->begin);
        span->begin = stamp_begin(t); /* that looking is not in the call */
    }
    t->state->current_begin = span->begin;
    __atomic_store_n(&t->state->current_operation, operation ? operation->id : 0, __ATOMIC_RELEASE);
}


/* Back from the call that span_begin announced. */
static inline void call_over(struct span *span)
{
    struct thread *t = span->thread;
    t->state->current_operation = 0;
    thread_was_inside(t, span->end - span->begin);
    if (UNLIKELY(span->end > t->next_look))
        look_around(t, span->end);
}

void record_nothing(struct span *span)
{
    call_over(span);
}

static void summarize_call(struct span *span, uint64_t bytes)
{
    struct spool_tally *tally = tally_find(span->thread, span->call, span->site->path, bytes, SPOOL_TALLY_SUMMARY);
    if (!tally) {
        record_lost();
        return;
    }
    tally->count++;
    tally->bytes += bytes;
    tally->inside_ticks += span->end - span->begin;
}

void record_call(struct span *span, const struct exchange *exchange, const struct exchange *receive)
{
    struct thread *t = span->thread;
    struct spool_stream *stream = &t->stream;
    call_over(span);
    exchange = exchange ? exchange : &no_exchange;
    struct operation *operation = NULL, *receiving = NULL;
    if (LIKELY(!stream->full)) {
        operation = exchange_operation(span, &span->site->last_operation, exchange);
        receiving = receive ? exchange_operation(span, &span->site->last_receive, receive) : NULL;
    }
    if (UNLIKELY(!operation || !spool_stream_room(stream, t->record_room, 0))) {
        summarize_call(span, exchange->actual->bytes);
        return;
    }
    unsigned char *at = UNLIKELY(t->meter != NULL) ? meter_put_call(t->meter, stream->at) : stream->at;
    uint64_t fields[] = {operation->id, span->begin - stream->last_begin, span->end - span->begin, receiving ? receiving->id : 0};
    stream->last_begin = span->begin;
    spool_stream_commit(stream, spool_put(at, SPOOL_CALL, fields, sizeof fields / sizeof fields[0]));
}

struct message message_received(const struct message *posted, const MPI_Status *status)
{
    struct message actual = *posted;
    if (UNLIKELY(posted->peer == SPOOL_PROC_NULL)) { /* whatever the status says: MPICH 4.0 leaves source 0 in it */
        actual.tag = SPOOL_ANY_TAG;
        actual.bytes = 0;
        return actual;
    }
    actual.peer = peer_code(status->MPI_SOURCE);
    actual.tag = tag_code(status->MPI_TAG);
    actual.bytes = bytes_received(status);
    return actual;
}

static struct message message_came(const struct message *posted, const MPI_Status *status)
{
    if (status && posted->kind == SPOOL_RECV)
        return message_received(posted, status);
    struct message actual = *posted;
    if (status && posted->kind == SPOOL_IO)
        actual.bytes = bytes_received(status);
    return actual;
}

void span_done(struct span *span, struct message *message, const MPI_Status *status, int error)
{
    if (UNLIKELY(error != MPI_SUCCESS)) {
        record_call(span, NULL, NULL);
        return;
    }
    if (LIKELY(!status)) {
        record_call(span, &(struct exchange){message, message}, NULL);
        return;
    }
    if (message->receive) {
        struct message received = message_came(message->receive, status);
        record_call(span, &(struct exchange){message, message}, &(struct exchange){message->receive, &received});
        return;
    }
    struct message came = message_came(message, status);
    record_call(span, &(struct exchange){message, &came}, NULL);
    *message = came;
}

void record_unsuccessful_test(struct span *span)
{
    call_over(span);
    tally_unsuccessful_test(span->thread, span->call, span->site, span->end - span->begin);
}
