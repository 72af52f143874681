#include "post_again.h"

#include "../base/arena.h"
#include "comm.h"
#include "meter.h"
#include "request_memory.h"

int64_t *outstanding;

int record_init_world(int world_size)
{
    outstanding = arena_alloc((size_t)world_size * sizeof *outstanding);
    return outstanding != NULL;
}

/* --- posts -------------------------------------------------------------------------------------------------------- */

/* What posts have to do where more than time is measured, or tests are injected; and large ones where it is looked whether they
 * should be. */
static __attribute__((noinline)) void post_with_more(struct thread *t, struct spool_live *live, struct operation *operation,
                                                     uintptr_t caller)
{
    if (t->meter)
        meter_post(t->meter, live);
    if (t->injector)
        thread_hooks.posted(t->injector, live, operation, caller);
    if (t->reach)
        reach_hooks.started(t->reach, live);
}

static inline ALWAYS_INLINE void fill_live(struct thread *t, struct spool_live *live, struct operation *operation,
                                           uintptr_t caller, uint64_t begin, uint64_t end)
{
    unsigned flags = live->flags & (SPOOL_LIVE_PERSISTENT | SPOOL_LIVE_CHAINED | SPOOL_LIVE_REDUCES);
    fill_post(t, live, flags, operation, begin, end);
    if (UNLIKELY(!stamps_are_plain || operation->key.bytes >= large_posts))
        post_with_more(t, live, operation, caller);
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
        if (stale->flags & (SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES))
            thread_hooks.ended(stale);
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

/* An operation that was posted neither last from there nor after that one. */
static __attribute__((noinline)) struct operation *next_operation(struct thread *t, struct callsite *site, enum call call,
                                                                  struct message *message)
{
    struct operation *last = site->last_operation;
    const struct comm *comm = comm_of_message(t, message);
    if (message->receive)
        message->related = posted_receive(t, site, call, message->receive);
    struct operation *operation = operation_of(t, &site->last_operation, call, site->path, comm, message, message);
    if (last && !last->key.coarse) /* those that stand for several are posted from several sites */
        last->followed_by = operation;
    return operation;
}

__attribute__((noinline)) struct spool_live *record_post_slowly(struct thread *t, enum call call, struct caller caller, uint64_t begin,
                                                                uint64_t end, struct message *message, MPI_Request handle,
                                                                const void *variable)
{
    struct callsite *site = callsite_of(t, caller);
    struct operation *operation = operation_again(site, call, message);
    if (UNLIKELY(!operation))
        operation = next_operation(t, site, call, message);
    thread_was_inside(t, end - begin);
    struct spool_live *live = operation ? request_new(t) : NULL;
    if (UNLIKELY(!live)) {
        record_lost();
        return NULL;
    }
    live->flags = 0;
    fill_live(t, live, operation, caller.return_address, begin, end);
    if (UNLIKELY(operation->key.coarse)) {
        live->injection_arm |= SPOOL_LIVE_LEFT_OUT;
        live->definition = message->bytes;
        live->path = site->path;
    }
    struct spool_live *stale = request_insert(t, request_key(handle), mpi_request_is_shared(handle), variable, live);
    if (UNLIKELY(stale != NULL))
        drop_stale(t, stale);
    return live;
}

struct spool_live *record_post_apart(struct thread *t, enum call call, struct caller caller, uint64_t begin, uint64_t end,
                                     struct message *message, MPI_Request handle, const void *variable)
{
    struct spool_live *live = post_again(t, call, caller, begin, end, message, handle, variable);
    return LIKELY(live) ? live : record_post_slowly(t, call, caller, begin, end, message, handle, variable);
}

void request_makes_comm(struct spool_live *live, const void *handle, int fortran)
{
    if (!live)
        return;
    live->definition = (uintptr_t)handle;
    live->flags |= (uint8_t)(SPOOL_LIVE_MAKES_COMM | (fortran ? SPOOL_LIVE_FORTRAN : 0));
}

/* --- persistent requests ------------------------------------------------------------------------------------------ */

struct spool_live *record_init(struct span *span, struct message *message, MPI_Request handle, const void *variable)
{
    struct thread *t = span->thread;
    const struct comm *comm = comm_of_message(t, message);
    struct operation *operation =
        operation_of(t, &span->site->last_operation, span->call, span->site->path, comm, message, message);
    record_call(span, &(struct exchange){message, message}, NULL);
    struct spool_live *live = operation ? request_new(t) : NULL;
    if (UNLIKELY(!live)) {
        record_lost();
        return NULL;
    }
    live->thread = live->home = (uint16_t)t->number;
    live->flags = SPOOL_LIVE_PERSISTENT;
    live->definition = (uintptr_t)operation;
    live->partitions = 1;
    live->memory = SPOOL_MEMORY_UNKNOWN;
    live->ready = 0;
    if (UNLIKELY(t->injector != NULL))
        thread_hooks.made(t->injector, live);
    struct spool_live *stale = request_insert(t, request_key(handle), mpi_request_is_shared(handle), variable, live);
    if (UNLIKELY(stale != NULL))
        drop_stale(t, stale);
    return live;
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

/* Threads make partitions of one request ready at the same time. */
void record_ready(struct thread *t, MPI_Request handle, int partitions)
{
    struct spool_live *live = persistent_request(t, handle, NULL);
    if (!live || partitions <= 0)
        return;
    uint16_t before = __atomic_load_n(&live->ready, __ATOMIC_RELAXED), after;
    do
        after = partitions > UINT16_MAX - before ? UINT16_MAX : (uint16_t)(before + partitions);
    while (!__atomic_compare_exchange_n(&live->ready, &before, after, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
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
    if (!operation) {
        record_lost();
        return;
    }
    live->ready = 0; /* not when it is completed: a call that made a partition ready may be recorded later */
    fill_live(t, live, operation, caller.return_address, begin, end);
    if (UNLIKELY(operation->key.coarse)) {
        live->injection_arm |= SPOOL_LIVE_LEFT_OUT;
        live->path = site->path;
    }
    if (UNLIKELY(live->memory))
        request_memory_set(live, live->memory);
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

/* --- unsuccessful tests, or ended nothing ------------------------------------------------------------------------- */

struct spool_live *known_request(struct thread *t, MPI_Request handle, const void *variable)
{
    struct spool_live *live = handle == mpi.request_null ? NULL : request_find(t, request_key(handle), variable);
    return live && request_is_active(live) ? live : NULL;
}

void record_incomplete(const struct span *span, struct spool_live *live, int certain)
{
    if (live->unsuccessful_tests == 0) {
        live->first_unsuccessful_test = span->begin;
        live->last_incomplete = 0;
    }
    live->last_unsuccessful_test = span->begin;
    if (certain)
        live->last_incomplete = span->begin;
    live->unsuccessful_tests++;
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
