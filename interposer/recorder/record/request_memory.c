#include "request_memory.h"

#include "../base/accelerator.h"
#include "../base/arena.h"
#include "../base/uncancelled.h"

#include <errno.h>

/*
 * What a driver said of a range of addresses is kept for 10 ms. Nobody says when memory is freed, and its addresses may then be
 * memory of another kind: so what is recorded may be wrong for so long, and who touches memory asks the driver itself.
 */
enum { RANGES = 16, KEPT_NS = 10000000 };

struct memory_ranges {
    struct {
        struct accelerator_memory memory;
        uint64_t until;                    /* ticks; 0: nothing is kept here */
    } kept[RANGES];
    unsigned next;
};

void request_memory_look(struct thread *t)
{
    if (t->memory_ranges || t->stream.full || !accelerator_seen())
        return;
    t->memory_ranges = arena_alloc(sizeof *t->memory_ranges);
    t->gives_buffers |= t->memory_ranges != NULL;
}

static enum spool_data_memory ask(struct memory_ranges *ranges, const void *address, uint64_t now)
{
    unsigned at = ranges->next++ % RANGES;
    int saved_errno = errno, cancel_state = uncancelled_begin();
    ranges->kept[at].memory = accelerator_memory_quietly(address);
    ranges->kept[at].until = now + clock_ticks(KEPT_NS, spool_header()->nominal_ticks_per_ns);
    uncancelled_end(cancel_state);
    errno = saved_errno;
    return ranges->kept[at].memory.kind;
}

static enum spool_data_memory memory_at(struct memory_ranges *ranges, const void *address)
{
    uint64_t now = clock_now();
    if (!address) /* nothing is given, or MPI_BOTTOM */
        return SPOOL_MEMORY_UNKNOWN;
    for (int i = 0; i < RANGES; i++) {
        const struct accelerator_memory *memory = &ranges->kept[i].memory;
        if ((uintptr_t)address - memory->begin < memory->end - memory->begin && now < ranges->kept[i].until)
            return memory->kind;
    }
    return ask(ranges, address, now);
}

/* Of what is sent and received the one that is farther from the host. */
static enum spool_data_memory memory_of_both(struct thread *t, const void *sends, const void *receives)
{
    if (!t->memory_ranges || t->stream.full)
        return SPOOL_MEMORY_UNKNOWN;
    enum spool_data_memory sent = memory_at(t->memory_ranges, sends), received = memory_at(t->memory_ranges, receives);
    return sent > received ? sent : received;
}

void request_memory_posted(struct thread *t, struct spool_live *live, const void *sends, const void *receives)
{
    if (live)
        request_memory_set(live, memory_of_both(t, sends, receives));
}

void request_memory_made(struct thread *t, struct spool_live *live, const void *sends, const void *receives)
{
    if (live)
        live->memory = memory_of_both(t, sends, receives);
}
