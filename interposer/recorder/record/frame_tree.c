#include "frame_tree.h"

#include "../spool/writer.h"
#include "cells.h"
#include "thread.h"

#include <string.h>

enum { FRAMES = 4092 /* those of a chunk of 64 KiB */, BUCKETS = 2048, NONE = 0 };

/* Places are numbered from 1. */
static struct {
    struct spool_frame *entries;
    unsigned used;               /* so many places were in use at some time */
    unsigned free_count;         /* of these */
    uint16_t free;               /* linked through `next` */
    uint16_t first[BUCKETS];
    uint8_t is_kept[FRAMES + 1]; /* while sweeping */
    unsigned sweeps;
} tree;

_Static_assert(sizeof(struct spool_chunk) + FRAMES * sizeof(struct spool_frame) <= SPOOL_CHUNK_ALIGN, "frames fill a chunk");

int frame_tree_open(void)
{
    struct spool_chunk *chunk = spool_new_chunk(SPOOL_CHUNK_FRAMES, 0, SPOOL_CHUNK_ALIGN, 0, 1);
    memset(&tree, 0, sizeof tree);
    tree.entries = chunk ? (struct spool_frame *)(chunk + 1) : NULL;
    return chunk != NULL;
}

int frame_tree_is_open(void)
{
    return tree.entries != NULL;
}

static struct spool_frame *entry_at(uint16_t place)
{
    return &tree.entries[place - 1];
}

static uint16_t *bucket_of(uint32_t identity)
{
    return &tree.first[identity % BUCKETS];
}

static uint16_t place_of(uint32_t identity)
{
    uint16_t place = *bucket_of(identity);
    while (place != NONE && entry_at(place)->identity != identity)
        place = entry_at(place)->next;
    return place;
}

static uint16_t take_place(void)
{
    if (tree.free == NONE)
        return tree.used < FRAMES ? (uint16_t)++tree.used : NONE;
    uint16_t place = tree.free;
    tree.free = entry_at(place)->next;
    tree.free_count--;
    return place;
}

static uint16_t add_frame(uint32_t identity, uint16_t caller, uintptr_t address)
{
    uint16_t place = take_place(), *bucket = bucket_of(identity);
    if (place == NONE)
        return NONE;
    struct spool_frame *entry = entry_at(place);
    entry->address = address;
    entry->caller = caller;
    entry->next = *bucket;
    __atomic_store_n(&entry->identity, identity, __ATOMIC_RELEASE);
    *bucket = place;
    return place;
}

/* Two paths of one identity, of four thousand million, are one. */
uint32_t frame_tree_intern(const uintptr_t *frames, unsigned count, int *is_new)
{
    uint32_t identity = 0;
    uint16_t place = NONE;
    *is_new = 0;
    for (unsigned i = count < SPOOL_FRAMES_DEPTH ? count : SPOOL_FRAMES_DEPTH; i-- > 0;) {
        uint16_t caller = place;
        identity = spool_frame_identity(identity, frames[i]);
        place = place_of(identity);
        if (place != NONE)
            continue;
        place = add_frame(identity, caller, frames[i]);
        *is_new = 1;
        if (place == NONE)
            return 0;
    }
    return identity;
}

int frame_tree_has(uint32_t path)
{
    return place_of(path) != NONE;
}

unsigned frame_tree_frames(uint32_t path, uintptr_t *frames)
{
    unsigned count = 0;
    for (uint16_t place = place_of(path); place != NONE && count < SPOOL_FRAMES_DEPTH; place = entry_at(place)->caller)
        frames[count++] = (uintptr_t)entry_at(place)->address;
    return count;
}

/* --- what is taken out -------------------------------------------------------------------------------------------- */

static void keep(uint32_t path)
{
    for (uint16_t place = place_of(path); place != NONE && !tree.is_kept[place]; place = entry_at(place)->caller)
        tree.is_kept[place] = 1;
}

static void take_out(uint16_t place)
{
    struct spool_frame *entry = entry_at(place);
    uint16_t *link = bucket_of(entry->identity);
    while (*link != place)
        link = &entry_at(*link)->next;
    *link = entry->next;
    __atomic_store_n(&entry->identity, 0, __ATOMIC_RELEASE);
    entry->next = tree.free;
    tree.free = place;
    tree.free_count++;
}

unsigned frame_tree_sweep(void)
{
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    memset(tree.is_kept, 0, sizeof tree.is_kept);
    for (unsigned i = 0; i < count; i++)
        cells_each_path(threads[i]->cells, keep);
    for (uint16_t place = 1; place <= tree.used; place++)
        if (entry_at(place)->identity && !tree.is_kept[place])
            take_out(place);
    tree.sweeps++;
    return FRAMES - tree.used + tree.free_count;
}

unsigned frame_tree_sweeps(void)
{
    return __atomic_load_n(&tree.sweeps, __ATOMIC_RELAXED);
}
