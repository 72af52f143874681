/*
 * Sums of LAPSCOPE_RECORD=job, in a table of fixed size (schema/spool.h): those with the most time are kept.
 *
 * This is space-saving (Metwally, Agrawal, El Abbadi 2005) in batches. Where the table is full, the lighter half of its entries is
 * folded into one entry of each function, so that a call costs no search for the lightest. Whatever comes back begins anew, and
 * says how much it may have had before: no more than the heaviest entry that was ever folded. So each entry's time is
 * right but for an error that it names, each function's time is exact, and what is not in the table is lighter than that error.
 */
#ifndef LAPSCOPE_CELLS_H
#define LAPSCOPE_CELLS_H

#include "tally_key.h"

enum { CELLS = 1023 /* those of a chunk of 128 KiB */ };

/* NULL: there is no room. */
struct cells *cells_create(unsigned thread);

/* Never NULL. */
struct spool_tally *cells_find(struct cells *cells, struct tally_key key);

/* Folds the lighter half. */
void cells_fold(struct cells *cells);

/* Of each entry that has one. Another thread may be about to change them. */
void cells_each_path(const struct cells *cells, void (*take)(uint32_t path));

static inline struct spool_cell *cell_of(struct spool_tally *sums)
{
    return (struct spool_cell *)sums;
}

/* A send of so many bytes, which no other request ended with, took so long inside MPI. */
static inline void cell_add_send(struct spool_cell *cell, uint64_t bytes, uint64_t ticks, uint64_t at_once_ticks)
{
    if (ticks < at_once_ticks) {
        cell->at_once++;
        cell->most_bytes_at_once = bytes > cell->most_bytes_at_once ? bytes : cell->most_bytes_at_once;
    } else {
        cell->least_bytes_waiting = cell->waiting && cell->least_bytes_waiting < bytes ? cell->least_bytes_waiting : bytes;
        cell->waiting++;
    }
}

#endif
