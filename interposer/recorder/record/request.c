#include "request.h"

#include "../base/arena.h"

enum { FIRST_INDEX = 256, LIVE_CHUNK_BYTES = SPOOL_CHUNK_ALIGN };

static int grow_index(struct request_index *index)
{
    struct request_slot *old = index->slots;
    uint32_t old_size = old ? index->mask + 1 : 0, size = old ? old_size * 2 : FIRST_INDEX;
    struct request_slot *fresh = arena_alloc(size * sizeof *fresh);
    if (!fresh)
        return 0;
    index->slots = fresh;
    index->mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++) {
        if (!old[i].live)
            continue;
        unsigned at = request_slot_of(index, old[i].key);
        while (fresh[at].live)
            at = (at + 1) & index->mask;
        fresh[at] = old[i];
    }
    return 1;
}

/* Threads the chunk's entries from `first` on onto the free list, the lowest on top. */
static void add_entries(struct thread *t, struct spool_chunk *chunk, struct spool_live *first)
{
    size_t count = (size_t)((char *)chunk + chunk->bytes - (char *)first) / sizeof *first;
    for (size_t i = count; i-- > 0;) {
        first[i].owner = (uintptr_t)t->free_live;
        t->free_live = &first[i];
    }
    struct live_entries *entries = arena_alloc(sizeof *entries);
    if (!entries)
        return;
    *entries = (struct live_entries){first, count, t->live_entries};
    t->live_entries = entries;
}

int request_init(struct thread *t)
{
    struct spool_chunk *chunk = spool_new_state_chunk(t->number, LIVE_CHUNK_BYTES);
    if (!chunk || !grow_index(&t->index))
        return 0;
    t->state = (struct spool_thread_state *)(chunk + 1);
    t->state->thread = (uint16_t)t->number;
    add_entries(t, chunk, (struct spool_live *)(t->state + 1));
    return 1;
}

struct spool_live *request_new_slow(struct thread *t)
{
    t->free_live = __atomic_exchange_n(&t->returned_live, NULL, __ATOMIC_ACQUIRE);
    if (!t->free_live) {
        struct spool_chunk *chunk = spool_new_chunk(SPOOL_CHUNK_LIVE, t->number, LIVE_CHUNK_BYTES, 0, 1);
        if (!chunk)
            return NULL;
        add_entries(t, chunk, (struct spool_live *)(chunk + 1));
    }
    return request_new(t);
}

/* --- chains of one handle ----------------------------------------------------------------------------------------- */

enum { CHAIN_SEARCH = 64 }; /* entries looked at for the right variable before the oldest is taken */

static struct spool_live *next_of(const struct spool_live *live)
{
    return live->flags & SPOOL_LIVE_CHAINED ? (struct spool_live *)(uintptr_t)live->next_same : NULL;
}

/* Knuth, TAOCP 6.4, algorithm R. */
void request_clear_slot(struct request_index *index, unsigned at)
{
    index->count--;
    for (unsigned next = at;;) {
        next = (next + 1) & index->mask;
        if (!index->slots[next].live)
            break;
        unsigned home = request_slot_of(index, index->slots[next].key);
        if (((next - home) & index->mask) < ((next - at) & index->mask))
            continue; /* it may not stand before its home */
        index->slots[at] = index->slots[next];
        at = next;
    }
    index->slots[at].live = NULL;
}

static void remove_from_chain(struct request_index *index, uint64_t key, struct spool_live *live)
{
    unsigned place = request_place(index, key);
    struct spool_live *before = NULL, *at = index->slots[place].live;
    while (at && at != live) {
        before = at;
        at = next_of(at);
    }
    if (!at)
        return;
    if (!before) {
        request_unlink_first(index, place, at);
        return;
    }
    struct spool_live *next = next_of(at);
    if (next) {
        before->next_same = (uintptr_t)next;
    } else {
        before->flags &= (uint8_t)~SPOOL_LIVE_CHAINED;
        index->slots[place].last = before;
    }
    at->flags &= (uint8_t)~SPOOL_LIVE_CHAINED;
}

/* Under the key, behind those that have it already; not at all when the index cannot grow. The index is locked. */
static inline void put(struct request_index *index, uint64_t key, struct spool_live *live)
{
    if (UNLIKELY(index->count * 2 > index->mask) && !grow_index(index))
        return;
    struct request_slot *slot = &index->slots[request_place(index, key)];
    request_put(index, slot, key, live);
}

struct spool_live *request_insert_slow(struct thread *t, uint64_t key, int shared, struct spool_live *live)
{
    struct request_index *index = &t->index;
    request_lock(index);
    struct spool_live *stale = shared ? NULL : request_chain(index, key);
    if (UNLIKELY(stale != NULL))
        remove_from_chain(index, key, stale);
    put(index, key, live);
    request_unlock(index);
    return stale;
}

static struct spool_live *find_variable(struct request_index *index, uint64_t key, const void *variable)
{
    request_lock(index);
    struct spool_live *live = request_chain(index, key);
    for (int i = 0; live && live->variable != (uintptr_t)variable; i++)
        live = i < CHAIN_SEARCH ? next_of(live) : NULL;
    request_unlock(index);
    return live;
}

struct spool_live *request_find_slow(struct thread *t, uint64_t key, const void *variable)
{
    struct spool_live *live = find_variable(&t->index, key, variable), *oldest = NULL;
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; !live && i < count; i++)
        live = threads[i] == t ? NULL : find_variable(&threads[i]->index, key, variable);
    if (LIKELY(live != NULL))
        return live;
    for (unsigned i = 0; i < count; i++) { /* the application has moved the handle to another variable */
        struct request_index *index = &threads[i]->index;
        request_lock(index);
        struct spool_live *head = request_chain(index, key);
        request_unlock(index);
        if (head && threads[i] == t)
            return head;
        if (head && (!oldest || head->post_begin < oldest->post_begin))
            oldest = head; /* a younger one has been given the handle after ours was completed */
    }
    return oldest;
}

struct spool_live *request_take_slow(struct thread *t, uint64_t key, const void *variable)
{
    struct spool_live *live = request_find_slow(t, key, variable);
    if (live && !request_is_persistent(live))
        request_detach(key, live);
    return live;
}

void request_detach(uint64_t key, struct spool_live *live)
{
    struct request_index *index = &threads[request_home(live)]->index;
    request_lock(index);
    remove_from_chain(index, key, live);
    request_unlock(index);
}

void request_attach(uint64_t key, struct spool_live *live)
{
    struct request_index *index = &threads[request_home(live)]->index;
    request_lock(index);
    const struct spool_live *there = request_is_persistent(live) ? request_chain(index, key) : NULL;
    while (there && there != live)
        there = next_of(there);
    if (!there)
        put(index, key, live);
    request_unlock(index);
}

void request_release_foreign(struct spool_live *live)
{
    struct spool_live **returned = &threads[request_home(live)]->returned_live;
    struct spool_live *head = __atomic_load_n(returned, __ATOMIC_RELAXED);
    do
        live->owner = (uintptr_t)head;
    while (!__atomic_compare_exchange_n(returned, &head, live, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}
