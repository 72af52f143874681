/* Sums of LAPSCOPE_RECORD=job, added up: of entries of one rank, and of ranks. */
#ifndef LAPSCOPE_SPOOL_CELL_H
#define LAPSCOPE_SPOOL_CELL_H

#include "../../../schema/spool.h"

/* What does not fit stays at the most there is: then a sum is too low, and not wrong beyond measure. */
static inline uint64_t spool_sum(uint64_t one, uint64_t other)
{
    uint64_t sum;
    return __builtin_add_overflow(one, other, &sum) ? UINT64_MAX : sum;
}

static inline void spool_cell_add(struct spool_cell *into, const struct spool_cell *cell)
{
    struct spool_tally *sums = &into->sums;
    sums->count = spool_sum(sums->count, cell->sums.count);
    sums->bytes = spool_sum(sums->bytes, cell->sums.bytes);
    sums->inside_ticks = spool_sum(sums->inside_ticks, cell->sums.inside_ticks);
    sums->completion_ticks = spool_sum(sums->completion_ticks, cell->sums.completion_ticks);
    sums->mpi_ticks = spool_sum(sums->mpi_ticks, cell->sums.mpi_ticks);
    sums->window_ticks = spool_sum(sums->window_ticks, cell->sums.window_ticks);
    into->overlappable_ticks = spool_sum(into->overlappable_ticks, cell->overlappable_ticks);
    into->error_ticks = spool_sum(into->error_ticks, cell->error_ticks);
    if (cell->waiting && (!into->waiting || cell->least_bytes_waiting < into->least_bytes_waiting))
        into->least_bytes_waiting = cell->least_bytes_waiting;
    if (cell->most_bytes_at_once > into->most_bytes_at_once)
        into->most_bytes_at_once = cell->most_bytes_at_once;
    into->at_once = spool_sum(into->at_once, cell->at_once);
    into->waiting = spool_sum(into->waiting, cell->waiting);
}

#endif
