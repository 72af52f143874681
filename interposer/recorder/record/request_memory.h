/* What memory the data of a request lie in, where the driver of an accelerator is in the process; elsewhere nothing is asked. */
#ifndef LAPSCOPE_REQUEST_MEMORY_H
#define LAPSCOPE_REQUEST_MEMORY_H

#include "thread.h"

/* Whether a driver has come: from then on the thread's wrappers give the buffers of requests. Costs a look at the loader's count. */
void request_memory_look(struct thread *t);

/* A request was posted with these buffers, either of which may be NULL, or made, where it is persistent; `live` may be NULL. */
void request_memory_posted(struct thread *t, struct spool_live *live, const void *sends, const void *receives);
void request_memory_made(struct thread *t, struct spool_live *live, const void *sends, const void *receives);

static inline enum spool_data_memory request_memory_of(const struct spool_live *live)
{
    return (enum spool_data_memory)((live->injection_arm & SPOOL_LIVE_MEMORY) >> SPOOL_LIVE_MEMORY_SHIFT);
}

/* On the thread that posted it, which alone writes there. */
static inline void request_memory_set(struct spool_live *live, enum spool_data_memory memory)
{
    live->injection_arm |= (uint8_t)((unsigned)memory << SPOOL_LIVE_MEMORY_SHIFT);
}

#endif
