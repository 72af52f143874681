/*
 * Live requests: the entries lie in the spool, so that a killed process leaves them behind; an index in ordinary memory
 * finds them by handle. Handles are reused, so an entry dies exactly when its request does.
 *
 * Several live requests may share one handle: Open MPI and MPICH give a constant, already complete request for sends
 * that were done within the call. Such entries form a chain, oldest first, and are told apart by the address of the
 * application's variable; where that has moved, the oldest is taken (they are alike but for what was sent).
 *
 * A persistent request has one entry, from the call that makes it to MPI_Request_free; between its activations the
 * entry's operation is 0, and readers of the spool take it for free. It keeps its handle, and stays in the index while
 * it is completed: other threads may call MPI_Pready meanwhile.
 *
 * Each thread owns the entries that it posted and their index. Another thread that completes one of them takes the
 * owner's index lock for a moment (only under MPI_THREAD_MULTIPLE) and hands the entry back through returned_live.
 *
 * MPI gives a handle to the next request as soon as it has ended the last one, and with several threads that next one
 * may be recorded before the end of the last. So under MPI_THREAD_MULTIPLE other entries are taken out of the index before
 * the completing call, while their handles are certain, and put back if they did not complete.
 */
#ifndef LAPSCOPE_REQUEST_H
#define LAPSCOPE_REQUEST_H

#include "thread.h"

#include <stddef.h>
#include <string.h>

int request_init(struct thread *t);

/* A blank entry, its operation still 0; NULL when the spool cannot grow. */
struct spool_live *request_new_slow(struct thread *t);

static inline struct spool_live *request_new(struct thread *t)
{
    struct spool_live *live = t->free_live;
    if (UNLIKELY(!live))
        return request_new_slow(t);
    t->free_live = (struct spool_live *)(uintptr_t)live->owner;
    return live;
}

/* The live request with that handle in that variable, whichever thread posted it; NULL when it is not known. */
struct spool_live *request_find_slow(struct thread *t, uint64_t key, const void *variable);

static inline unsigned request_slot_of(const struct request_index *index, uint64_t key)
{
    return (unsigned)((key * 0x9e3779b97f4a7c15u) >> 32) & index->mask;
}

static inline void request_lock(struct request_index *index)
{
    if (recorder_multiple)
        while (__atomic_exchange_n(&index->lock, 1, __ATOMIC_ACQUIRE))
            ;
}

static inline void request_unlock(struct request_index *index)
{
    if (recorder_multiple)
        __atomic_store_n(&index->lock, 0, __ATOMIC_RELEASE);
}

/* The slot of a handle, or the empty one where it would be put; the index is locked by the caller. */
static inline unsigned request_place(const struct request_index *index, uint64_t key)
{
    unsigned at = request_slot_of(index, key);
    while (index->slots[at].live && index->slots[at].key != key)
        at = (at + 1) & index->mask;
    return at;
}

/* The chain of a handle; the index is locked by the caller. */
static inline struct spool_live *request_chain(const struct request_index *index, uint64_t key)
{
    return index->slots[request_place(index, key)].live;
}

static inline struct spool_live *request_find(struct thread *t, uint64_t key, const void *variable)
{
    request_lock(&t->index);
    struct spool_live *live = request_chain(&t->index, key);
    request_unlock(&t->index);
    if (LIKELY(live && live->variable == (uintptr_t)variable))
        return live;
    return request_find_slow(t, key, variable);
}

/* Puts an entry behind those that have its handle. Only chained entries have their links written: most requests have a handle of
 * their own, and half an entry to touch. */
static inline void request_append(struct request_slot *slot, struct spool_live *live)
{
    slot->last->next_same = (uintptr_t)live;
    slot->last->flags |= SPOOL_LIVE_CHAINED;
    slot->last = live;
}

/* Where a handle can be put at once: a slot of its own, or that of those which share it; else NULL. */
static inline struct request_slot *request_place_for(const struct request_index *index, uint64_t key, int shared)
{
    struct request_slot *slot = &index->slots[request_place(index, key)];
    int is_free = slot->live ? shared : index->count * 2 <= index->mask;
    return LIKELY(is_free) ? slot : NULL;
}

static inline void request_put(struct request_index *index, struct request_slot *slot, uint64_t key, struct spool_live *live)
{
    if (slot->live) {
        request_append(slot, live);
        return;
    }
    *slot = (struct request_slot){key, live, live};
    index->count++;
}

/* The same as request_insert where there are several threads, a request's end was not seen, or the index has to grow. */
struct spool_live *request_insert_slow(struct thread *t, uint64_t key, int shared, struct spool_live *live);

/* Makes the entry findable under the handle in the application's `variable`. Where the handle is not one that live
 * requests share, an entry that still has it belonged to a request whose end was not seen: it is taken out and
 * returned, else NULL. */
static inline struct spool_live *request_insert(struct thread *t, uint64_t key, int shared, const void *variable,
                                                struct spool_live *live)
{
    struct request_index *index = &t->index;
    live->variable = (uintptr_t)variable;
    if (UNLIKELY(recorder_multiple)) /* nothing of the index may be read without its lock */
        return request_insert_slow(t, key, shared, live);
    struct request_slot *slot = request_place_for(index, key, shared);
    if (UNLIKELY(!slot))
        return request_insert_slow(t, key, shared, live);
    request_put(index, slot, key, live);
    return NULL;
}

/* Empties a slot of a locked index, closing the gap. */
void request_clear_slot(struct request_index *index, unsigned at);

/* Takes the first of a handle's entries, `live`, out of its slot of a locked index. */
static inline void request_unlink_first(struct request_index *index, unsigned at, struct spool_live *live)
{
    if (live->flags & SPOOL_LIVE_CHAINED) {
        index->slots[at].live = (struct spool_live *)(uintptr_t)live->next_same;
        live->flags &= (uint8_t)~SPOOL_LIVE_CHAINED;
    } else if (LIKELY(!index->slots[(at + 1) & index->mask].live)) {
        index->slots[at].live = NULL;
        index->count--;
    } else {
        request_clear_slot(index, at);
    }
}

/* Who posted an entry, its flags and its arm of injection, in one piece: a word that was stored as bytes would have to reach memory
 * before it could be read. */
_Static_assert(offsetof(struct spool_live, flags) == offsetof(struct spool_live, thread) + 2 &&
                   offsetof(struct spool_live, injection_arm) == offsetof(struct spool_live, thread) + 3,
               "one word");

static inline uint32_t request_origin(unsigned thread, unsigned flags, unsigned injection_arm)
{
    return thread | flags << 16 | injection_arm << 24;
}

static inline uint32_t request_origin_of(const struct spool_live *live)
{
    uint32_t origin;
    memcpy(&origin, (const char *)live + offsetof(struct spool_live, thread), sizeof origin);
    return origin;
}

static inline void request_set_origin(struct spool_live *live, uint32_t origin)
{
    memcpy((char *)live + offsetof(struct spool_live, thread), &origin, sizeof origin);
}

/* Where one thread at a time calls MPI: finds and detaches the first of a handle's entries, should it be in that variable and of
 * that origin; else NULL. */
static inline ALWAYS_INLINE struct spool_live *request_take_plain(struct request_index *index, uint64_t key, const void *variable,
                                                                  uint32_t origin)
{
    const uint32_t chained = request_origin(0, SPOOL_LIVE_CHAINED, 0);
    unsigned at = request_place(index, key);
    struct request_slot *slot = &index->slots[at];
    struct spool_live *live = slot->live;
    if (UNLIKELY(!live || live->variable != (uintptr_t)variable))
        return NULL;
    uint32_t own = request_origin_of(live);
    if (own == (origin | chained)) {
        slot->live = (struct spool_live *)(uintptr_t)live->next_same;
    } else if (UNLIKELY(own != origin)) {
        return NULL;
    } else if (LIKELY(!index->slots[(at + 1) & index->mask].live)) {
        slot->live = NULL;
        index->count--;
    } else {
        request_clear_slot(index, at);
    }
    return live;
}

/* The same as request_take for what is not the first of its handle's entries, or not in this thread's index. */
struct spool_live *request_take_slow(struct thread *t, uint64_t key, const void *variable);

static inline int request_is_persistent(const struct spool_live *live)
{
    return live->flags & SPOOL_LIVE_PERSISTENT;
}

/* Finds an entry and detaches it, where it is no persistent request's; NULL when it is not known. */
static inline struct spool_live *request_take(struct thread *t, uint64_t key, const void *variable)
{
    struct request_index *index = &t->index;
    request_lock(index);
    unsigned at = request_place(index, key);
    struct spool_live *live = index->slots[at].live;
    int is_first = live && live->variable == (uintptr_t)variable;
    if (LIKELY(is_first && !request_is_persistent(live)))
        request_unlink_first(index, at, live);
    request_unlock(index);
    return LIKELY(is_first) ? live : request_take_slow(t, key, variable);
}

/* The thread whose index and free list an entry belongs to: that which posted it, or made the persistent request. */
static inline unsigned request_home(const struct spool_live *live)
{
    return UNLIKELY(request_is_persistent(live)) ? live->home : live->thread;
}

/* Whether a request is under way: a persistent one need not be. */
static inline int request_is_active(const struct spool_live *live)
{
    return live->operation != 0;
}

/* Puts an entry back under its handle, unless it is there. */
void request_attach(uint64_t key, struct spool_live *live);
/* Takes an entry out of the index, if it is there: a persistent request's when that is freed. */
void request_detach(uint64_t key, struct spool_live *live);
/* Ends a detached entry that another thread posted. */
void request_release_foreign(struct spool_live *live);

/* Ends a detached entry that this thread posted. */
static inline void request_release_own(struct thread *t, struct spool_live *live)
{
    __atomic_store_n(&live->operation, 0, __ATOMIC_RELEASE);
    live->owner = (uintptr_t)t->free_live;
    t->free_live = live;
}

/* Ends a detached entry: it is free for its owner's next request. */
static inline void request_release(struct thread *t, struct spool_live *live)
{
    if (LIKELY(request_home(live) == t->number)) {
        request_release_own(t, live);
        return;
    }
    __atomic_store_n(&live->operation, 0, __ATOMIC_RELEASE);
    request_release_foreign(live);
}

#endif
