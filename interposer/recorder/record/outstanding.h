/* Bytes of sends that are not complete yet, by world rank of the destination. */
#ifndef LAPSCOPE_OUTSTANDING_H
#define LAPSCOPE_OUTSTANDING_H

#include "thread.h"

extern int64_t *outstanding __attribute__((visibility("hidden")));

/* The same as add_outstanding where one thread at a time calls MPI. */
static inline int64_t add_outstanding_alone(int32_t world_rank, int64_t bytes)
{
    int64_t before = outstanding[world_rank];
    outstanding[world_rank] = before + bytes;
    return before;
}

/* Returns what was outstanding before. */
static inline int64_t add_outstanding(int32_t world_rank, int64_t bytes)
{
    if (LIKELY(!recorder_multiple))
        return add_outstanding_alone(world_rank, bytes);
    return __atomic_fetch_add(&outstanding[world_rank], bytes, __ATOMIC_RELAXED);
}

#endif
