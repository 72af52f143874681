/*
 * The post of a request. Most come from a call site that posts the same once more, on a thread of which nothing but time is
 * measured: post_again is their whole cost, and stands in the wrappers that programs call most. All others go the slow way.
 */
#ifndef LAPSCOPE_POST_AGAIN_H
#define LAPSCOPE_POST_AGAIN_H

#include "operation.h"
#include "outstanding.h"
#include "record.h"
#include "request.h"

/* What every post says of its request. `flags`: those that the entry has from before. */
static inline void fill_post(struct thread *t, struct spool_live *live, unsigned flags, struct operation *operation,
                             uint64_t begin, uint64_t end)
{
    request_set_origin(live, request_origin(t->number, flags, t->left_out));
    live->post_begin = begin;
    live->post_ticks = end - begin;
    live->mpi_ticks_at_post = t->state->mpi_ticks;
    live->outstanding_bytes = 0;
    live->unsuccessful_tests = 0;
    live->peer_slot = UINT32_MAX;
    live->owner = (uintptr_t)operation;
}

/* The operation that is posted, where it is the one last posted from there, or that which followed it the last time: loops over
 * neighbours post the same ones in turn. NULL: it is another. */
static inline ALWAYS_INLINE struct operation *operation_again(struct callsite *site, enum call call, const struct message *message)
{
    struct operation *operation = site->last_operation;
    if (LIKELY(operation_repeats(operation, call, message)))
        return operation;
    if (!operation || !operation_repeats(operation->followed_by, call, message))
        return NULL;
    return site->last_operation = operation->followed_by;
}

/* NULL, and nothing has been done, where there is more to do. */
static inline ALWAYS_INLINE struct spool_live *post_again(struct thread *t, enum call call, struct caller caller, uint64_t begin,
                                                          uint64_t end, const struct message *message, MPI_Request handle,
                                                          const void *variable)
{
    if (UNLIKELY(!stamps_are_plain || recorder_multiple || python_is_on))
        return NULL;
    struct callsite *site = callsite_again(t, caller);
    struct operation *operation = LIKELY(site != NULL) ? operation_again(site, call, message) : NULL;
    struct spool_live *live = t->free_live;
    if (UNLIKELY(!operation || !live || operation->key.coarse || operation->key.bytes >= large_posts))
        return NULL;
    struct request_slot *slot = request_place_for(&t->index, request_key(handle), mpi_request_is_shared(handle));
    if (UNLIKELY(!slot))
        return NULL;
    t->free_live = (struct spool_live *)(uintptr_t)live->owner;
    thread_was_inside(t, end - begin);
    fill_post(t, live, 0, operation, begin, end);
    live->variable = (uintptr_t)variable;
    if (message->kind == SPOOL_SEND && operation->peer_world >= 0) {
        live->peer_slot = (uint32_t)operation->peer_world;
        live->outstanding_bytes = (uint64_t)add_outstanding_alone(operation->peer_world, (int64_t)operation->key.bytes);
    }
    __atomic_store_n(&live->operation, operation->id, __ATOMIC_RELEASE);
    request_put(&t->index, slot, request_key(handle), live);
    return live;
}

#endif
