#include "tally.h"

#include "../base/arena.h"
#include "../base/intern.h"
#include "cells.h"

enum { TALLY_CHUNK_BYTES = SPOOL_CHUNK_ALIGN };

struct tally_entry {
    uint64_t hash;
    struct tally_key key;
    struct spool_tally *tally;
};

_Static_assert(sizeof(struct tally_key) == 8, "keys are hashed by words");

int tally_init(struct thread *t)
{
    t->tally_chunk = spool_new_chunk(SPOOL_CHUNK_TALLY, t->number, TALLY_CHUNK_BYTES, 0, 1);
    t->tally_used = 0;
    return t->tally_chunk != NULL;
}

struct spool_tally *tally_new_place(struct thread *t)
{
    uint32_t places = (uint32_t)((t->tally_chunk->bytes - sizeof *t->tally_chunk) / sizeof(struct spool_tally));
    if (t->tally_used == places) {
        struct spool_chunk *full = t->tally_chunk;
        if (!tally_init(t)) {
            t->tally_chunk = full;
            t->tally_used = places;
            return NULL;
        }
    }
    return (struct spool_tally *)(t->tally_chunk + 1) + t->tally_used++;
}

static struct tally_entry *new_entry(struct thread *t, const struct tally_key *key, uint64_t hash)
{
    struct tally_entry *entry = arena_alloc(sizeof *entry);
    struct spool_tally *tally = entry ? tally_new_place(t) : NULL;
    if (!tally)
        return NULL;
    *entry = (struct tally_entry){hash, *key, tally};
    tally->size_class = key->size_class;
    tally->reason = key->reason;
    tally->path = key->path;
    __atomic_store_n(&tally->call_plus_1, key->call_plus_1, __ATOMIC_RELEASE);
    return entry;
}

struct spool_tally *tally_find(struct thread *t, enum call call, uint32_t path, uint64_t bytes, enum spool_tally_reason reason)
{
    struct tally_key key = {(uint16_t)(call + 1), (uint8_t)size_class_of(bytes), (uint8_t)reason, path};
    if (t->cells && reason != SPOOL_TALLY_INJECTION) {
        callsite_heed_gone_paths(t->callsites); /* the path of a new cell comes back with the next call from there */
        return cells_find(t->cells, key);
    }
    uint64_t hash = intern_hash(&key, sizeof key);
    void **slot = intern_find(&t->tallies, hash, &key, sizeof key);
    if (!slot)
        return NULL;
    if (!*slot) {
        *slot = new_entry(t, &key, hash);
        t->tallies.count += *slot != NULL;
    }
    return *slot ? ((struct tally_entry *)*slot)->tally : NULL;
}

void tally_unsuccessful_test(struct thread *t, enum call call, struct callsite *site, uint64_t ticks)
{
    struct spool_tally *tally = tally_again(t, &site->last_tally, call, site->path, 0, SPOOL_TALLY_UNSUCCESSFUL_TEST);
    if (UNLIKELY(!tally)) {
        __atomic_fetch_add(&spool_header()->lost_records, 1, __ATOMIC_RELAXED);
        return;
    }
    tally->count++;
    tally->inside_ticks += ticks;
}
