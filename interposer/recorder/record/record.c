#include "record.h"

#include "../base/config.h"
#include "../node/job_record.h"
#include "../spool/codec.h"
#include "cells.h"
#include "comm.h"
#include "facts.h"
#include "meter.h"
#include "operation.h"
#include "processor.h"
#include "request_memory.h"
#include "sample.h"
#include "tally.h"

void record_lost(void)
{
    __atomic_fetch_add(&spool_header()->lost_records, 1, __ATOMIC_RELAXED);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static const struct message no_message = {.kind = SPOOL_OTHER, .peer = SPOOL_NO_PEER, .tag = SPOOL_NO_TAG};
static const struct exchange no_exchange = {&no_message, &no_message};

static inline ALWAYS_INLINE struct operation *exchange_operation(struct span *span, struct operation **last,
                                                                 const struct exchange *exchange)
{
    const struct comm *comm = exchange == &no_exchange ? NULL : comm_of_message(span->thread, exchange->posted);
    return operation_of(span->thread, last, span->call, span->site->path, comm, exchange->posted, exchange->actual);
}

/* Of a call that also receives: who waits for both halves is told what it waits for. */
static __attribute__((noinline)) struct operation *announced_halves(struct span *span, struct operation **last,
                                                                    const struct comm *comm, const struct message *message)
{
    struct thread *t = span->thread;
    struct operation *half = *last ? (struct operation *)(*last)->related : NULL;
    struct message both = *message;
    both.related = operation_of(t, &half, span->call, span->site->path, comm, message->receive, message->receive);
    return operation_of(t, last, span->call, span->site->path, comm, &both, &both);
}

/* The communicator and the datatype are not asked for anything yet: should they be invalid, then the application's own
 * call is the one to be told so. Hence its bytes are still 0. */
static inline struct operation *announced_operation(struct span *span, const struct message *message)
{
    struct thread *t = span->thread;
    const struct comm *comm = !message ? NULL : message->comm ? message->comm : comm_known(t, message->scope);
    struct operation **last = message ? &span->site->last_announced : &span->site->last_operation;
    message = message ? message : &no_message;
    if (UNLIKELY(message->receive != NULL))
        return announced_halves(span, last, comm, message);
    return operation_of(t, last, span->call, span->site->path, comm, message, message);
}

/* Now and then: what the thread gets of a processor, and the clock, that a run which is killed can be put on the wall
 * clock. Every 10 ms, and some thousand times at the most for each doubling of the run time. */
static __attribute__((noinline, cold)) void look_around(struct thread *t, uint64_t now)
{
    if (now <= t->next_facts)
        return;
    if (config.record == CONFIG_RECORD_OFF) { /* nobody will read the facts */
        nap_look(t, now);
        return;
    }
    const struct spool_file_header *header = spool_header();
    uint64_t pause = clock_ticks(10000000, header->nominal_ticks_per_ns), share = (now - header->first.ticks) / 4096;
    processor_look(t, now);
    facts_look(t);
    request_memory_look(t);
    callsite_heed_gone_paths(t->callsites); /* one may have gone while this thread made a cell for it */
    spool_refresh_clock();
    job_record_look(now);
    t->next_facts = now + (share > pause ? share : pause);
}

/* Before a call begins; returns when it does. */
static __attribute__((noinline, cold)) uint64_t look_before(struct thread *t, uint64_t now)
{
    /* before the sample is asked: whoever makes it smaller from here on is not overlooked */
    __atomic_store_n(&t->next_look, UINT64_MAX, __ATOMIC_SEQ_CST);
    if (stamps_are_plain)
        look_around(t, now);
    sample_look(t, now);
    uint64_t expected = UINT64_MAX, next = t->slot_end < t->next_facts ? t->slot_end : t->next_facts;
    __atomic_compare_exchange_n(&t->next_look, &expected, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return stamps_are_plain ? stamp_begin(t) : now; /* that looking is not in the call */
}

/* In the order that spool.h names, for those who read while this thread runs. */
static inline ALWAYS_INLINE void announce(struct span *span, struct thread *t, enum call call, struct caller caller,
                                          const struct message *message, struct request_array requests, uint32_t count)
{
    struct spool_thread_state *state = t->state;
    span->thread = t;
    span->call = call;
    span->site = callsite_of(t, caller);
    span->completed = 1;
    span->share = 0;
    struct operation *operation = UNLIKELY(t->cells != NULL) ? NULL /* nobody reads it */ : announced_operation(span, message);
    span->begin = stamp_begin(t);
    if (UNLIKELY(span->begin > t->next_look))
        span->begin = look_before(t, span->begin);
    __atomic_store_n(&state->current_begin, span->begin, __ATOMIC_RELEASE); /* not seen before the end of the last call */
    state->current_call = (uint16_t)call;
    __atomic_store_n(&state->waits_count, count, __ATOMIC_RELEASE);
    if (count) {
        state->waits_variables = (uintptr_t)requests.variables;
        state->waits_stride = requests.fortran ? sizeof(MPI_Fint) : sizeof(MPI_Request);
    }
    __atomic_store_n(&state->current_operation, operation ? operation->id : 0, __ATOMIC_RELEASE);
}

void span_begin(struct span *span, struct thread *t, enum call call, struct caller caller, const struct message *message)
{
    announce(span, t, call, caller, message, (struct request_array){NULL, 0}, 0);
}

void span_begin_completing(struct span *span, struct thread *t, enum call call, struct caller caller,
                           struct request_array requests, int count)
{
    announce(span, t, call, caller, NULL, requests, count > 0 ? (uint32_t)count : 0);
}

/* Back from the call that span_begin announced. */
static inline void call_over(struct span *span)
{
    struct thread *t = span->thread;
    __atomic_store_n(&t->state->current_operation, 0, __ATOMIC_RELAXED);
    thread_was_inside(t, span->end - span->begin);
    if (UNLIKELY(span->end > t->next_look))
        look_around(t, span->end);
}

void record_nothing(struct span *span)
{
    call_over(span);
}

static struct spool_tally *summarize_call(struct span *span, const struct message *came)
{
    uint64_t bytes = came->bytes;
    struct spool_tally *tally = tally_again(span->thread, &span->site->last_summary, span->call, span->site->path, bytes, SPOOL_TALLY_SUMMARY);
    if (!tally) {
        record_lost();
        return NULL;
    }
    tally->count++;
    tally->bytes += bytes;
    tally->inside_ticks += span->end - span->begin;
    if (span->thread->cells && came->kind == SPOOL_SEND)
        cell_add_send(cell_of(tally), bytes, span->end - span->begin, span->thread->at_once_ticks);
    return tally;
}

static void leave_out_half(struct span *span, struct operation **last, const struct exchange *exchange)
{
    enum spool_kind kind = exchange->posted->kind;
    if (kind != SPOOL_SEND && kind != SPOOL_RECV && kind != SPOOL_COLLECTIVE)
        return;
    struct operation *operation = exchange_operation(span, last, exchange);
    if (operation)
        sample_left_out(span->thread, &operation->skipped, span->begin);
}

/* Only summed up. */
static __attribute__((noinline)) void leave_call_out(struct span *span, const struct exchange *exchange,
                                                     const struct exchange *receive)
{
    struct thread *t = span->thread;
    t->call_tally = summarize_call(span, exchange->actual);
    t->call_left_out = span->begin;
    if (t->stream.full) /* nothing that comes will be matched */
        return;
    leave_out_half(span, &span->site->last_operation, exchange);
    if (receive)
        leave_out_half(span, &span->site->last_receive, receive);
}

static inline ALWAYS_INLINE void put_call(struct span *span, unsigned char *at, const struct operation *operation,
                            const struct operation *receiving)
{
    struct spool_stream *stream = &span->thread->stream;
    uint64_t fields[] = {operation->id, span->begin - stream->last_begin, span->end - span->begin, receiving ? receiving->id : 0};
    stream->last_begin = span->begin;
    spool_stream_commit(stream, spool_put(at, SPOOL_CALL, fields, sizeof fields / sizeof fields[0]));
}

int record_call_after_all(const struct span *span)
{
    struct thread *t = span->thread;
    struct span own = *span;
    if (LIKELY(t->call_left_out != span->begin))
        return 1;
    struct operation *operation = exchange_operation(&own, &own.site->last_operation, &no_exchange);
    if (!operation || !spool_stream_room(&t->stream, t->record_room, 1))
        return 0;
    if (t->call_tally) {
        t->call_tally->count--;
        t->call_tally->inside_ticks -= span->end - span->begin;
    }
    t->call_left_out = 0;
    put_call(&own, t->stream.at, operation, NULL);
    return 1;
}

void record_call(struct span *span, const struct exchange *exchange, const struct exchange *receive)
{
    struct thread *t = span->thread;
    struct spool_stream *stream = &t->stream;
    call_over(span);
    exchange = exchange ? exchange : &no_exchange;
    struct operation *operation = NULL, *receiving = NULL;
    if (LIKELY(!t->left_out && !stream->full)) {
        operation = exchange_operation(span, &span->site->last_operation, exchange);
        receiving = receive ? exchange_operation(span, &span->site->last_receive, receive) : NULL;
    }
    int is_coarse = operation && (operation->key.coarse || (receiving && receiving->key.coarse));
    if (UNLIKELY(!operation || is_coarse || !spool_stream_room(stream, t->record_room, 0))) {
        leave_call_out(span, exchange, receive);
        return;
    }
    put_call(span, UNLIKELY(t->meter != NULL) ? meter_put_call(t->meter, stream->at) : stream->at, operation, receiving);
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

static struct message message_came(const struct message *posted, const MPI_Status *status, int error)
{
    struct message actual = *posted;
    if (status && posted->kind == SPOOL_RECV) {
        actual = message_received(posted, status);
        if (UNLIKELY(error != MPI_SUCCESS) && actual.bytes > posted->bytes) /* truncated: Open MPI tells the size that was sent */
            actual.bytes = posted->bytes;
        return actual;
    }
    if (status && posted->kind == SPOOL_IO)
        actual.bytes = bytes_received(status);
    return actual;
}

static int error_class(int error)
{
    int class = MPI_ERR_UNKNOWN;
    mpi.Error_class(error, &class);
    return class;
}

__attribute__((cold)) int is_truncation(int error)
{
    return error_class(error) == MPI_ERR_TRUNCATE;
}

/* Whether a call that returned an error has done all the same what others wait for. A collective whose arguments were sound took
 * its place among the others'. */
static __attribute__((noinline, cold)) int took_part(const struct message *message, int error)
{
    int class = error_class(error);
    if (class == MPI_ERR_TRUNCATE)
        return message->kind == SPOOL_RECV || message->kind == SPOOL_COLLECTIVE || message->receive;
    return message->kind == SPOOL_COLLECTIVE && (class == MPI_ERR_OTHER || class == MPI_ERR_INTERN);
}

void span_done(struct span *span, struct message *message, const MPI_Status *status, int error)
{
    if (UNLIKELY(error != MPI_SUCCESS) && !took_part(message, error)) {
        record_call(span, NULL, NULL);
        return;
    }
    if (LIKELY(!status)) {
        record_call(span, &(struct exchange){message, message}, NULL);
        return;
    }
    if (message->receive) {
        struct message received = message_came(message->receive, status, error);
        record_call(span, &(struct exchange){message, message}, &(struct exchange){message->receive, &received});
        return;
    }
    struct message came = message_came(message, status, error);
    record_call(span, &(struct exchange){message, &came}, NULL);
    *message = came;
}

void record_unsuccessful_test(struct span *span)
{
    struct spool_thread_state *state = span->thread->state;
    state->unsuccessful_operation = state->current_operation;
    call_over(span);
    state->unsuccessful_tests++;
    tally_unsuccessful_test(span->thread, span->call, span->site, span->end - span->begin);
}
