#include "cells.h"

#include "../base/arena.h"
#include "../base/call.h"
#include "../base/intern.h"
#include "../spool/cell.h"
#include "../spool/writer.h"
#include "thread.h"

enum { BUCKETS = 1024, NONE = UINT16_MAX, WEIGHTS = 256 /* four for each power of two */ };

struct cells {
    struct spool_chunk *chunk;
    struct spool_cell *entries;
    unsigned used;               /* so many places were in use at some time */
    uint16_t free;               /* of those that were folded */
    uint16_t first[BUCKETS], next[CELLS];
};

_Static_assert(2 * CALL_COUNT < CELLS - 16, "the functions' own entries, which stay, leave room for others");
_Static_assert(sizeof(struct spool_chunk) + CELLS * sizeof(struct spool_cell) <= 2 * SPOOL_CHUNK_ALIGN, "cells fill a chunk");

struct cells *cells_create(unsigned thread)
{
    struct cells *cells = arena_alloc(sizeof *cells);
    struct spool_chunk *chunk = cells ? spool_new_chunk(SPOOL_CHUNK_CELLS, thread, 2 * SPOOL_CHUNK_ALIGN, 0, 1) : NULL;
    if (!chunk)
        return NULL;
    cells->chunk = chunk;
    cells->entries = (struct spool_cell *)(chunk + 1);
    cells->free = NONE;
    memset(cells->first, 0xff, sizeof cells->first);
    return cells;
}

static uint16_t *bucket_of(struct cells *cells, uint64_t word)
{
    return &cells->first[intern_hash(&word, sizeof word) >> 1 & (BUCKETS - 1)];
}

static struct tally_key key_of(const struct spool_cell *cell)
{
    const struct spool_tally *sums = &cell->sums;
    return (struct tally_key){sums->call_plus_1, sums->size_class, sums->reason, sums->path};
}

/* --- what is folded ----------------------------------------------------------------------------------------------- */

static uint64_t weight_of(const struct spool_cell *cell)
{
    return cell->sums.inside_ticks + cell->sums.completion_ticks + cell->error_ticks;
}

/* In the order of weights. */
static unsigned weight_class(const struct spool_cell *cell)
{
    uint64_t weight = weight_of(cell);
    if (weight < 4)
        return (unsigned)weight;
    unsigned power = 63 - (unsigned)__builtin_clzll(weight);
    return 4 * (power - 1) + (unsigned)(weight >> (power - 2) & 3);
}

static int is_kept_apart(const struct spool_cell *cell)
{
    return cell->sums.call_plus_1 && cell->sums.size_class != SPOOL_CELL_REST;
}

static void unlink_cell(struct cells *cells, unsigned at)
{
    uint16_t *link = bucket_of(cells, tally_word(key_of(&cells->entries[at])));
    while (*link != at)
        link = &cells->next[*link];
    *link = cells->next[at];
}

static void link_cell(struct cells *cells, unsigned at)
{
    uint16_t *bucket = bucket_of(cells, tally_word(key_of(&cells->entries[at])));
    cells->next[at] = *bucket;
    *bucket = (uint16_t)at;
}

static unsigned place_of(struct cells *cells, uint64_t word)
{
    unsigned at = *bucket_of(cells, word);
    while (at != NONE && !tally_is(&cells->entries[at].sums, word))
        at = cells->next[at];
    return at;
}

/* The entry becomes a part of that of its function, or that itself. */
static void fold(struct cells *cells, unsigned at)
{
    struct spool_cell *cell = &cells->entries[at];
    uint64_t weight = weight_of(cell);
    struct tally_key rest = {cell->sums.call_plus_1, SPOOL_CELL_REST, cell->sums.reason, 0};
    unsigned into = place_of(cells, tally_word(rest));
    if (weight > cells->chunk->base)
        cells->chunk->base = weight;
    unlink_cell(cells, at);
    cell->error_ticks = 0;
    if (into == NONE) {
        cell->sums.size_class = SPOOL_CELL_REST;
        cell->sums.path = 0;
        link_cell(cells, at);
        return;
    }
    spool_cell_add(&cells->entries[into], cell);
    *cell = (struct spool_cell){.error_ticks = 0};
    cells->next[at] = cells->free;
    cells->free = (uint16_t)at;
}

void cells_fold(struct cells *cells)
{
    uint16_t counts[WEIGHTS] = {0};
    unsigned entries = 0, limit = 0, below = 0;
    for (unsigned i = 0; i < cells->used; i++)
        if (is_kept_apart(&cells->entries[i])) {
            counts[weight_class(&cells->entries[i])]++;
            entries++;
        }
    while (entries && below + counts[limit] <= entries / 2)
        below += counts[limit++];
    unsigned of_limit = entries / 2 - below; /* so many of that weight class go as well */
    for (unsigned i = 0; i < cells->used; i++) {
        if (!is_kept_apart(&cells->entries[i]))
            continue;
        unsigned weight = weight_class(&cells->entries[i]);
        if (weight < limit || (weight == limit && of_limit && of_limit--))
            fold(cells, i);
    }
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static unsigned free_place(struct cells *cells)
{
    if (cells->free == NONE && cells->used < CELLS)
        return cells->used++;
    while (cells->free == NONE) /* once more where all that were folded became their functions' own */
        cells_fold(cells);
    unsigned at = cells->free;
    cells->free = cells->next[at];
    return at;
}

struct spool_tally *cells_find(struct cells *cells, struct tally_key key)
{
    unsigned at = place_of(cells, tally_word(key));
    if (LIKELY(at != NONE))
        return &cells->entries[at].sums;
    at = free_place(cells);
    struct spool_cell *cell = &cells->entries[at];
    cell->error_ticks = cells->chunk->base;
    cell->sums.size_class = key.size_class;
    cell->sums.reason = key.reason;
    cell->sums.path = key.path;
    __atomic_store_n(&cell->sums.call_plus_1, key.call_plus_1, __ATOMIC_RELEASE);
    link_cell(cells, at);
    return &cell->sums;
}

void cells_each_path(const struct cells *cells, void (*take)(uint32_t path))
{
    for (unsigned i = 0; cells && i < cells->used; i++)
        if (cells->entries[i].sums.path)
            take(cells->entries[i].sums.path);
}
