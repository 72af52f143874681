#include "record.h"

#include "arena.h"
#include "comm.h"
#include "inject.h"
#include "meter.h"
#include "operation.h"
#include "request.h"
#include "spool_codec.h"
#include "tally.h"

static int64_t *outstanding; /* bytes of sends not yet complete, by world rank of the destination */

int record_init_world(int world_size)
{
    outstanding = arena_alloc((size_t)world_size * sizeof *outstanding);
    return outstanding != NULL;
}

static inline int64_t add_outstanding(int32_t world_rank, int64_t bytes)
{
    if (LIKELY(!recorder_multiple)) {
        int64_t before = outstanding[world_rank];
        outstanding[world_rank] = before + bytes;
        return before;
    }
    return __atomic_fetch_add(&outstanding[world_rank], bytes, __ATOMIC_RELAXED);
}

/* --- posts -------------------------------------------------------------------------------------------------------- */

/* What posts have to do where more than time is measured, or tests are injected. */
static __attribute__((noinline)) void post_slowly(struct thread *t, struct spool_live *live, struct operation *operation,
                                                  uintptr_t caller)
{
    if (t->meter)
        meter_post(t->meter, live);
    if (t->injector)
        inject_posted(t->injector, live, operation, caller);
}

static void fill_live(struct thread *t, struct spool_live *live, struct operation *operation, uintptr_t caller, uint64_t begin,
                      uint64_t end)
{
    live->thread = (uint16_t)t->number;
    live->flags &= SPOOL_LIVE_PERSISTENT | SPOOL_LIVE_CHAINED | SPOOL_LIVE_REDUCES;
    live->injection_arm = 0;
    live->post_begin = begin;
    live->post_ticks = end - begin;
    live->mpi_ticks_at_post = t->state->mpi_ticks;
    live->polls = 0;
    live->outstanding_bytes = 0;
    live->owner = (uintptr_t)operation;
    live->peer_slot = UINT32_MAX;
    if (UNLIKELY(!stamps_are_plain))
        post_slowly(t, live, operation, caller);
    if (operation->key.kind == SPOOL_SEND && operation->peer_world >= 0) {
        live->peer_slot = (uint32_t)operation->peer_world;
        live->outstanding_bytes = (uint64_t)add_outstanding(operation->peer_world, (int64_t)operation->key.bytes);
    }
    __atomic_store_n(&live->operation, operation->id, __ATOMIC_RELEASE);
}

static void drop_stale(struct thread *t, struct spool_live *stale)
{
    if (request_is_active(stale)) {
        const struct operation *operation = (const struct operation *)(uintptr_t)stale->owner;
        if (stale->peer_slot != UINT32_MAX)
            add_outstanding((int32_t)stale->peer_slot, -(int64_t)operation->key.bytes);
        inject_ended(stale);
        __atomic_fetch_add(&spool_header()->unknown_requests, 1, __ATOMIC_RELAXED);
    }
    request_release(t, stale);
}

/* The receiving half of a request that also sends, as posted. */
static const struct operation *posted_receive(struct thread *t, struct callsite *site, enum call call,
                                              const struct message *receive)
{
    return operation_of(t, &site->last_receive, call, site->path, comm_of_message(t, receive), receive, receive);
}

struct spool_live *record_post(struct thread *t, enum call call, struct caller caller, uint64_t begin, uint64_t end,
                               struct message *message, MPI_Request handle, const void *variable)
{
    struct callsite *site = callsite_of(t, caller);
    const struct comm *comm = comm_of_message(t, message);
    if (UNLIKELY(message->receive != NULL))
        message->related = posted_receive(t, site, call, message->receive);
    struct operation *operation = operation_of(t, &site->last_operation, call, site->path, comm, message, message);
    thread_was_inside(t, end - begin);
    struct spool_live *live = operation ? request_new(t) : NULL;
    if (UNLIKELY(!live)) {
        record_lost();
        return NULL;
    }
    live->flags = 0;
    fill_live(t, live, operation, caller.return_address, begin, end);
    struct spool_live *stale = request_insert(t, request_key(handle), request_is_shared(handle), variable, live);
    if (UNLIKELY(stale != NULL))
        drop_stale(t, stale);
    return live;
}

/* --- persistent requests -------------------------------------------------------------------------------------------- */

void record_init(struct span *span, struct message *message, MPI_Request handle, const void *variable)
{
    struct thread *t = span->thread;
    const struct comm *comm = comm_of_message(t, message);
    struct operation *operation =
        operation_of(t, &span->site->last_operation, span->call, span->site->path, comm, message, message);
    record_call(span, &(struct exchange){message, message}, NULL);
    struct spool_live *live = operation ? request_new(t) : NULL;
    if (UNLIKELY(!live)) {
        record_lost();
        return;
    }
    live->thread = live->home = (uint16_t)t->number;
    live->flags = SPOOL_LIVE_PERSISTENT;
    live->definition = (uintptr_t)operation;
    live->partitions = 1;
    if (UNLIKELY(t->injector != NULL))
        inject_made(t->injector, live);
    struct spool_live *stale = request_insert(t, request_key(handle), request_is_shared(handle), variable, live);
    if (UNLIKELY(stale != NULL))
        drop_stale(t, stale);
}

static struct spool_live *persistent_request(struct thread *t, MPI_Request handle, const void *variable)
{
    struct spool_live *live = request_find(t, request_key(handle), variable);
    return live && live->flags & SPOOL_LIVE_PERSISTENT ? live : NULL;
}

void record_partitions(struct thread *t, MPI_Request handle, int partitions)
{
    struct spool_live *live = persistent_request(t, handle, NULL);
    if (live && partitions > 0)
        live->partitions = (uint32_t)partitions;
}

uint64_t partition_bytes(struct thread *t, MPI_Request handle, int partitions)
{
    const struct spool_live *live = persistent_request(t, handle, NULL);
    const struct operation *init = live ? (const struct operation *)(uintptr_t)live->definition : NULL;
    return init && partitions > 0 ? init->key.bytes / live->partitions * (uint64_t)partitions : 0;
}

struct message over_request(struct thread *t, MPI_Request handle)
{
    struct message message = nothing();
    const struct spool_live *live = persistent_request(t, handle, NULL);
    if (live)
        message.comm = ((const struct operation *)(uintptr_t)live->definition)->comm;
    return message;
}

void record_start(struct thread *t, enum call call, struct caller caller, uint64_t begin, uint64_t end, MPI_Request handle,
                  const void *variable)
{
    struct spool_live *live = persistent_request(t, handle, variable);
    thread_was_inside(t, end - begin);
    if (!live)
        return; /* it was made while nothing was recorded; its completion is counted as unknown */
    const struct operation *init = (const struct operation *)(uintptr_t)live->definition;
    struct message message = message_of(init->key.kind, init->key.peer, init->key.tag, NO_SCOPE);
    message.bytes = init->key.bytes;
    message.related = init;
    struct callsite *site = callsite_of(t, caller);
    struct operation *operation =
        operation_of(t, &site->last_operation, call, site->path, init->comm, &message, &message);
    if (operation)
        fill_live(t, live, operation, caller.return_address, begin, end);
    else
        record_lost();
}

void record_startall(struct thread *t, struct caller caller, uint64_t begin, uint64_t end, int count,
                     struct request_array requests)
{
    for (int i = 0; i < count; i++) {
        uint64_t share = (end - begin) / (unsigned)count, from_here = begin + share * (unsigned)i;
        record_start(t, CALL_MPI_Startall, caller, from_here, from_here + share, request_handle(requests, i),
                     request_variable(requests, i));
    }
}

/* --- completions -------------------------------------------------------------------------------------------------- */

struct spool_live *known_request(struct thread *t, MPI_Request handle, const void *variable)
{
    struct spool_live *live = handle == mpi.request_null ? NULL : request_find(t, request_key(handle), variable);
    return live && request_is_active(live) ? live : NULL;
}

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
static void fill_received(struct outcome_key *key, const struct operation *operation, const MPI_Status *status)
{
    if (UNLIKELY(operation->key.peer == SPOOL_PROC_NULL)) { /* see message_received */
        key->tag = SPOOL_ANY_TAG;
        key->bytes = 0;
        return;
    }
    key->source = peer_code(status->MPI_SOURCE);
    key->tag = tag_code(status->MPI_TAG);
    key->bytes = bytes_received(status);
    if (UNLIKELY(key->bytes > operation->key.bytes)) /* truncated: Open MPI tells the size that was sent */
        key->bytes = operation->key.bytes;
}

static inline uint32_t outcome_of_request(struct thread *t, const struct spool_live *live, struct operation *operation,
                                          const MPI_Status *status, enum spool_ended ended, uint64_t *bytes)
{
    struct operation *own = live->thread == t->number ? operation : NULL;
    struct outcome_key key = {.bytes = operation->key.bytes,
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
            fill_received(&key, operation, status);
        else if (UNLIKELY(operation->key.kind == SPOOL_IO))
            key.bytes = bytes_received(status);
        else if (UNLIKELY(operation->related && operation->related->key.kind == SPOOL_RECV &&
                          operation->key.kind == SPOOL_SEND))
            key.receive_operation = received_operation(t, operation->related, status);
    }
    key.ended = (uint8_t)ended;
    *bytes = key.bytes;
    return outcome_of(t, own, &key);
}

static uint64_t since(uint64_t moment, uint64_t begin)
{
    return moment ? moment - begin + 1 : 0;
}

/* The records that may stand in front of a REQUEST; returns where to go on. */
static unsigned char *put_extras(struct thread *t, unsigned char *at, const struct spool_live *live)
{
    if (UNLIKELY(live->thread != t->number || live->injection_arm)) {
        uint64_t foreign[] = {live->thread, live->injection_arm};
        at = spool_put(at, SPOOL_FOREIGN, foreign, 2);
    }
    if (UNLIKELY(t->meter != NULL) && live->thread == t->number)
        at = meter_put_request(t->meter, live, at);
    int seen_complete = live->flags & SPOOL_LIVE_SEEN_COMPLETE;
    if (live->polls || seen_complete) {
        uint64_t begin = live->post_begin, seen = seen_complete ? since(live->seen_complete, begin) : 0;
        uint64_t none[SPOOL_HOT_FIELDS] = {0, 0, 0, 0, seen};
        uint64_t extra[SPOOL_HOT_FIELDS] = {live->polls, since(live->first_poll, begin), since(live->last_poll, begin),
                                            since(live->last_incomplete, begin), seen};
        at = spool_put(at, SPOOL_EXTRA, live->polls ? extra : none, SPOOL_HOT_FIELDS);
    }
    return at;
}

static void summarize_request(const struct span *span, const struct spool_live *live, const struct operation *operation,
                              uint64_t bytes, uint64_t mpi_ticks)
{
    struct spool_tally *tally = tally_find(span->thread, operation->key.call, operation->key.path, bytes, SPOOL_TALLY_SUMMARY);
    if (!tally) {
        record_lost();
        return;
    }
    tally->count++;
    tally->bytes += bytes;
    tally->inside_ticks += live->post_ticks;
    tally->completion_ticks += (span->end - span->begin) / span->completed;
    tally->mpi_ticks += mpi_ticks;
    tally->window_ticks += span->begin - live->post_begin - live->post_ticks;
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
                                                      const struct operation *operation)
{
    inject_ended(live);
    if (live->flags & SPOOL_LIVE_MAKES_COMM)
        define_made_comm(t, live, operation);
}

void request_makes_comm(struct spool_live *live, const void *handle, int fortran)
{
    if (!live)
        return;
    live->definition = (uintptr_t)handle;
    live->flags |= (uint8_t)(SPOOL_LIVE_MAKES_COMM | (fortran ? SPOOL_LIVE_FORTRAN : 0));
}

void record_completion(const struct span *span, struct spool_live *live, const MPI_Status *status, enum spool_ended ended)
{
    struct thread *t = span->thread;
    struct operation *operation = (struct operation *)(uintptr_t)live->owner;
    uint64_t bytes, inside = 0;
    if (LIKELY(live->thread == t->number)) /* record_call has already counted the completing call itself */
        inside = t->state->mpi_ticks - live->mpi_ticks_at_post - (span->end - span->begin);
    uint32_t outcome = outcome_of_request(t, live, operation, status, ended, &bytes);
    if (live->peer_slot != UINT32_MAX)
        add_outstanding((int32_t)live->peer_slot, -(int64_t)operation->key.bytes);
    if (UNLIKELY(t->stream.full || !outcome || !spool_stream_room(&t->stream, t->record_room, 0))) {
        summarize_request(span, live, operation, bytes, inside);
    } else {
        unsigned char *at = put_extras(t, t->stream.at, live);
        uint64_t since_post = span->begin > live->post_begin ? span->begin - live->post_begin : 0;
        uint64_t fields[SPOOL_HOT_FIELDS] = {outcome, since_post, live->post_ticks, inside, live->outstanding_bytes};
        spool_stream_commit(&t->stream, spool_put(at, SPOOL_REQUEST, fields, SPOOL_HOT_FIELDS));
    }
    if (UNLIKELY(live->flags & (SPOOL_LIVE_MAKES_COMM | SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES)))
        complete_slowly(t, live, operation);
}

/* --- tests that said no, or ended nothing -------------------------------------------------------------------------- */

void record_incomplete(const struct span *span, struct spool_live *live, int certain)
{
    if (live->polls == 0) {
        live->first_poll = span->begin;
        live->last_incomplete = 0;
    }
    live->last_poll = span->begin;
    if (certain)
        live->last_incomplete = span->begin;
    live->polls++;
}

void record_seen_complete(const struct span *span, struct spool_live *live)
{
    if (live->flags & SPOOL_LIVE_SEEN_COMPLETE)
        return;
    live->seen_complete = span->end;
    live->flags |= SPOOL_LIVE_SEEN_COMPLETE;
}

void record_completable(struct thread *t, MPI_Request handle)
{
    struct spool_live *live = known_request(t, handle, NULL);
    if (!live || live->flags & SPOOL_LIVE_SEEN_COMPLETE)
        return;
    live->seen_complete = clock_now();
    live->flags |= SPOOL_LIVE_SEEN_COMPLETE;
}
