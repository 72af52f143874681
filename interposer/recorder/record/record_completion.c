#include "record_completion.h"

#include "cells.h"
#include "comm.h"
#include "meter.h"
#include "request_memory.h"
#include "sample.h"
#include "tally.h"

/* The operation of what the receiving half of a request got, as far as it is known; 0 when it could not be kept. */
static uint32_t received_operation(struct thread *t, const struct operation *posted, const MPI_Status *status)
{
    const struct operation_key *key = &posted->key;
    if (!isendrecv_has_status() && key->peer != SPOOL_PROC_NULL)
        return posted->id;
    struct message receive = message_of(SPOOL_RECV, key->peer, key->tag, NO_SCOPE);
    receive.bytes = key->bytes;
    struct message came = message_received(&receive, status);
    struct operation *last = NULL;
    struct operation *operation = operation_of(t, &last, key->call, key->path, posted->comm, &receive, &came);
    return operation ? operation->id : 0;
}

/* What a status tells of a receive. */
static void fill_received(struct outcome_key *key, const struct operation *operation, const MPI_Status *status,
                          uint64_t room)
{
    if (UNLIKELY(operation->key.peer == SPOOL_PROC_NULL)) { /* see message_received */
        key->tag = SPOOL_ANY_TAG;
        key->bytes = 0;
        return;
    }
    key->source = peer_code(status->MPI_SOURCE);
    key->tag = tag_code(status->MPI_TAG);
    key->bytes = bytes_received(status);
    if (UNLIKELY(key->bytes > room)) /* truncated: Open MPI tells the size that was sent */
        key->bytes = room;
}

/* Of what stands for several sizes the request knows its own, but for persistent ones. */
static uint64_t posted_bytes(const struct spool_live *live, const struct operation *operation)
{
    int is_known = operation->key.coarse >= SPOOL_DEFINE_FEW && !(live->flags & (SPOOL_LIVE_PERSISTENT | SPOOL_LIVE_MAKES_COMM));
    return UNLIKELY(is_known) ? live->definition : operation->key.bytes;
}

/* How a request ended. */
static struct outcome_key outcome_key_of(struct thread *t, const struct spool_live *live, const struct operation *operation,
                                         const MPI_Status *status, enum spool_ended ended)
{
    struct outcome_key key = {.bytes = posted_bytes(live, operation),
                              .operation = operation->id,
                              .source = operation->key.peer,
                              .tag = operation->key.tag};
    int cancelled = 0;
    /* another thread's MPI_Cancel may have come while this one was waiting */
    if (UNLIKELY((live->flags & SPOOL_LIVE_CANCELLED || recorder_multiple) && status))
        mpi.Test_cancelled(status, &cancelled);
    if (UNLIKELY(cancelled)) {
        key.bytes = 0;
        ended = SPOOL_CANCELLED;
    } else if (status && ended != SPOOL_FREED) {
        if (operation->key.kind == SPOOL_RECV)
            fill_received(&key, operation, status, key.bytes);
        else if (UNLIKELY(operation->key.kind == SPOOL_IO))
            key.bytes = bytes_received(status);
        else if (UNLIKELY(operation->related && operation->related->key.kind == SPOOL_RECV &&
                          operation->key.kind == SPOOL_SEND))
            key.receive_operation = received_operation(t, operation->related, status);
    }
    key.ended = (uint8_t)ended;
    return key;
}

static uint64_t since(uint64_t moment, uint64_t begin)
{
    return moment ? moment - begin + 1 : 0;
}

/* The records that may stand in front of a REQUEST; returns where to go on. */
static unsigned char *put_extras(struct thread *t, unsigned char *at, const struct spool_live *live)
{
    if (UNLIKELY(live->thread != t->number || live->injection_arm)) {
        uint64_t foreign[] = {live->thread, live->injection_arm & SPOOL_LIVE_ARM, request_memory_of(live)};
        at = spool_put(at, SPOOL_FOREIGN, foreign, 3);
    }
    if (UNLIKELY(t->meter != NULL) && live->thread == t->number)
        at = meter_put_request(t->meter, live, at);
    int seen_complete = live->flags & SPOOL_LIVE_SEEN_COMPLETE;
    if (live->unsuccessful_tests || seen_complete) {
        uint64_t begin = live->post_begin, seen = seen_complete ? since(live->seen_complete, begin) : 0;
        uint64_t none[SPOOL_HOT_FIELDS] = {0, 0, 0, 0, seen};
        uint64_t extra[SPOOL_HOT_FIELDS] = {live->unsuccessful_tests, since(live->first_unsuccessful_test, begin),
                                            since(live->last_unsuccessful_test, begin),
                                            since(live->last_incomplete, begin), seen};
        at = spool_put(at, SPOOL_EXTRA, live->unsuccessful_tests ? extra : none, SPOOL_HOT_FIELDS);
    }
    return at;
}

static inline uint64_t share_of_call(const struct span *span)
{
    uint64_t ticks = span->end - span->begin;
    return span->share ? span->share : span->completed == 1 ? ticks : ticks / span->completed;
}

/* What LAPSCOPE_RECORD=job wants to know besides. */
static inline void add_to_cell(const struct span *span, const struct spool_live *live, const struct operation *operation,
                               struct spool_cell *cell, uint64_t bytes, uint64_t share, uint64_t window, uint64_t mpi_ticks)
{
    uint64_t computed = window > mpi_ticks ? window - mpi_ticks : 0;
    cell->overlappable_ticks += share < computed ? share : computed;
    if (operation->key.kind == SPOOL_SEND && span->completed == 1)
        cell_add_send(cell, bytes, live->post_ticks + share, span->thread->at_once_ticks);
}

static inline ALWAYS_INLINE void summarize_request(const struct span *span, const struct spool_live *live, struct operation *operation,
                                                   uint64_t bytes, uint64_t mpi_ticks)
{
    struct thread *t = span->thread;
    struct spool_tally *found = NULL;
    struct spool_tally **last = live->thread == t->number ? &operation->last_summary : &found;
    uint32_t path = UNLIKELY(operation->key.coarse) ? live->path : operation->key.path;
    struct spool_tally *tally = tally_again(t, last, (enum call)operation->key.call, path, bytes, SPOOL_TALLY_SUMMARY);
    if (UNLIKELY(!tally)) {
        record_lost();
        return;
    }
    uint64_t share = share_of_call(span), window = span->begin - live->post_begin - live->post_ticks;
    tally->count++;
    tally->bytes += bytes;
    tally->inside_ticks += live->post_ticks;
    tally->completion_ticks += share;
    tally->mpi_ticks += mpi_ticks;
    tally->window_ticks += window;
    if (t->cells)
        add_to_cell(span, live, operation, cell_of(tally), bytes, share, window, mpi_ticks);
}

/* Its messages count where they are matched: under the source and the tag that they came with. */
static void count_left_out(struct thread *t, const struct spool_live *live, const struct operation *operation,
                           const struct outcome_key *key)
{
    const struct operation *receive = operation->related;
    if (key->ended == SPOOL_CANCELLED)
        return;
    struct operation *own = operation_as(t, operation, key->source, key->tag);
    if (own)
        sample_left_out(t, &own->skipped, live->post_begin);
    if (operation->key.kind != SPOOL_SEND || !receive || receive->key.kind != SPOOL_RECV)
        return;
    own = operation_as(t, receive, receive->key.peer, receive->key.tag);
    if (own)
        sample_left_out(t, &own->skipped, live->post_begin);
}

/* Only summed up. Where the call that ended it has a row, that has to know. */
static __attribute__((noinline)) void leave_request_out(const struct span *span, const struct spool_live *live,
                                                        struct operation *operation, const struct outcome_key *key)
{
    struct thread *t = span->thread;
    summarize_request(span, live, operation, key->bytes, inside_while_live(span, live));
    if (t->stream.full) /* nothing that comes will be matched */
        return;
    count_left_out(t, live, operation, key);
    if (t->call_left_out == span->begin || !spool_stream_room(&t->stream, SPOOL_RECORD_ROOM, 1))
        return;
    uint64_t fields[] = {span->completed};
    spool_stream_commit(&t->stream, spool_put(t->stream.at, SPOOL_TOGETHER, fields, 1));
}

/* The request's record, with that of the call where it has none yet; returns 0 when there is no room. */
static int put_request(const struct span *span, const struct spool_live *live, uint32_t outcome)
{
    struct thread *t = span->thread;
    int is_first = t->call_left_out == span->begin;
    if (t->stream.full || !record_call_after_all(span))
        return 0;
    if (is_first && span->completed > 1 && spool_stream_room(&t->stream, SPOOL_RECORD_ROOM, 1)) {
        uint64_t fields[] = {span->completed};
        spool_stream_commit(&t->stream, spool_put(t->stream.at, SPOOL_TOGETHER, fields, 1));
    }
    if (!spool_stream_room(&t->stream, t->record_room, 1))
        return 0;
    put_completion(&t->stream, put_extras(t, t->stream.at, live), live, outcome, span->begin, inside_while_live(span, live));
    return 1;
}

void record_unknown_completion(void)
{
    if (recorder_state == RECORDER_PAUSED)
        return; /* it was left out on purpose */
    __atomic_fetch_add(&spool_header()->unknown_requests, 1, __ATOMIC_RELAXED);
}

/* MPI_Comm_idup is done: now the new communicator may be asked for its members. */
static __attribute__((noinline, cold)) void define_made_comm(struct thread *t, const struct spool_live *live,
                                                            const struct operation *operation)
{
    const void *handle = (const void *)(uintptr_t)live->definition;
    MPI_Comm made = live->flags & SPOOL_LIVE_FORTRAN ? comm_f2c(*(const MPI_Fint *)handle) : *(const MPI_Comm *)handle;
    comm_define(t, SCOPE(made), call_names[operation->key.call], operation->comm, 0);
}

static __attribute__((noinline)) void complete_slowly(struct thread *t, struct spool_live *live,
                                                      const struct operation *operation, enum spool_ended ended)
{
    if (live->flags & (SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES))
        thread_hooks.ended(live);
    if ((live->flags & SPOOL_LIVE_MAKES_COMM) && ended != SPOOL_FAILED)
        define_made_comm(t, live, operation);
}

/* Whether a status tells what that of the operation's last request told, as far as sums ask. */
static inline int is_same_size(const struct operation *operation, const MPI_Status *status, enum spool_ended ended)
{
    const struct outcome_key *last = &operation->last_outcome.key;
    if (UNLIKELY(last->ended != ended))
        return 0;
    return operation->told == TOLD_NOTHING ||
           (operation->told == TOLD_RECEIVED && status && status_has_bytes(status, last->bytes));
}

/* What tests found before is kept nowhere, and so concerns nobody. */
void record_completion_summed(const struct span *span, struct spool_live *live, const MPI_Status *status, enum spool_ended ended)
{
    struct thread *t = span->thread;
    struct operation *operation = (struct operation *)(uintptr_t)live->owner;
    unsigned special = (live->flags & ~(unsigned)(SPOOL_LIVE_PERSISTENT | SPOOL_LIVE_SEEN_COMPLETE)) | live->injection_arm;
    int is_plain = live->thread == t->number && !special && !recorder_multiple && !t->ends_slowly;
    if (UNLIKELY(!is_plain || !is_same_size(operation, status, ended))) {
        record_completion_slowly(span, live, status, ended);
        return;
    }
    if (live->peer_slot != UINT32_MAX)
        add_outstanding((int32_t)live->peer_slot, -(int64_t)operation->key.bytes);
    summarize_request(span, live, operation, operation->last_outcome.key.bytes, inside_while_live(span, live));
}

void record_completion_slowly(const struct span *span, struct spool_live *live, const MPI_Status *status,
                              enum spool_ended ended)
{
    struct thread *t = span->thread;
    struct operation *operation = (struct operation *)(uintptr_t)live->owner;
    struct operation *own = live->thread == t->number ? operation : NULL;
    const struct outcome_key key = outcome_key_of(t, live, operation, status, ended);
    int has_row = !t->stream.full && !(live->injection_arm & SPOOL_LIVE_LEFT_OUT);
    uint32_t outcome = has_row ? outcome_of(t, own, &key) : 0;
    if (own && t->stream.full)
        operation->last_outcome.key = key; /* for the next one */
    if (live->peer_slot != UINT32_MAX)
        add_outstanding((int32_t)live->peer_slot, -(int64_t)operation->key.bytes);
    if (!outcome || !put_request(span, live, outcome))
        leave_request_out(span, live, operation, &key);
    if (UNLIKELY(live->flags & (SPOOL_LIVE_MAKES_COMM | SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES)))
        complete_slowly(t, live, operation, ended);
    if (UNLIKELY(t->reach != NULL))
        reach_hooks.ended(t->reach, span, live, ended, key.bytes);
}
