/*
 * How much earlier a send could be posted, how much later a receive be waited for (LAPSCOPE_REACH): when a send's data were
 * last written, and when a receive's data are first touched. What the wrappers have to do with it; watch.h has the rest.
 */
#ifndef LAPSCOPE_REACH_H
#define LAPSCOPE_REACH_H

#include "../record/record.h"
#include "buffer.h"

/* --- the start and the end --- */

/* MPI is up, and this thread is the first of the recorder's. */
void reach_start(struct thread *t);
/* MPI is about to end: nothing is watched any more. */
void reach_stop(struct thread *t);
/* The process ends, in whatever state it is. */
void reach_abandon(void);

/* --- behind real calls that have succeeded, of threads that give buffers: to be watched, or their memory to be recorded --- */

/* A request was posted: its entry, or NULL when there was no room for it. */
void reach_posted(struct thread *t, struct spool_live *live, struct given_buffer sends, struct given_buffer receives);

/* A persistent request was made; likewise. */
void reach_made(struct thread *t, struct spool_live *live, struct given_buffer sends, struct given_buffer receives);

/* A call that blocks has returned, and its row is written. */
void reach_called(const struct span *span, struct given_buffer sends, struct given_buffer receives);

/* --- the words of the clauses `sends` and `receives` of calls.def --- */

#define NO_BUFFER ((struct given_buffer){.is_given = 0})
#define UNTOLD(reason) ((struct given_buffer){.not = LEFT_OUT_##reason, .is_given = 1})
#define UNTOLD_AT(reason, data) ((struct given_buffer){.address = BASE(data), .not = LEFT_OUT_##reason, .is_given = 1})
#define UNWATCHED(data) ((struct given_buffer){.address = BASE(data), .is_given = 0})

static inline struct given_buffer given_buffer(const void *address, uint64_t count, MPI_Datatype type)
{
    return (struct given_buffer){.address = address, .count = count, .type = type, .is_given = 1};
}

#endif
