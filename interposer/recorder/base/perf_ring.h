/*
 * An event of perf_event_open(2) of one thread, whose samples the kernel lays into a ring buffer: no signal is sent, and what is
 * there is read later.
 */
#ifndef LAPSCOPE_PERF_RING_H
#define LAPSCOPE_PERF_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_ring {
    int fd;                  /* -1: not open */
    uint64_t id;             /* the kernel's, to know the descriptor by */
    void *pages;
    uint64_t read;           /* bytes of the ring read so far */
};

/* Of the thread `tid` of this process, 0: the calling one. The ring has room for `bytes` at least. Returns 0, or an errno value. */
int perf_ring_open(struct perf_ring *ring, struct perf_event_attr *attributes, pid_t tid, size_t bytes);
/* Whether the descriptor is still the event's own: a program that closes what is not its own may have put another file there. */
int perf_ring_is_own(const struct perf_ring *ring);
/* The descriptor is left alone when it is not the event's own any more. */
void perf_ring_close(struct perf_ring *ring);
/* The same in a child of fork, to whom only the descriptor was handed down. */
void perf_ring_forget(struct perf_ring *ring);

/* Whether something came since the last perf_ring_next() that returned 0. */
static inline int perf_ring_has_more(const struct perf_ring *ring)
{
    enum { DATA_HEAD = 1024 }; /* of struct perf_event_mmap_page; perf_ring.c asserts it */
    return __atomic_load_n((const uint64_t *)((const char *)ring->pages + DATA_HEAD), __ATOMIC_ACQUIRE) != ring->read;
}

/* The next record: its header, and where in the ring it begins; 0 when there is none. Its bytes are the kernel's again from
 * perf_ring_done() on. */
int perf_ring_next(struct perf_ring *ring, struct perf_event_header *header, uint64_t *at);
void perf_ring_copy(const struct perf_ring *ring, uint64_t at, void *to, size_t bytes);
void perf_ring_done(struct perf_ring *ring);

#endif
