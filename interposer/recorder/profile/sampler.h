/*
 * Samples of one thread: the instructions at which it is found while it runs in its own code, at about the rate of
 * LAPSCOPE_SAMPLE. The kernel's event of a thread's running time lays them into a ring buffer, without a signal
 * (perf_event_open(2)). Where that is forbidden, a timer of the thread's CPU time interrupts it, and the handler notes where it
 * was. A thread that sleeps, or is in the kernel, is not found.
 */
#ifndef LAPSCOPE_SAMPLER_H
#define LAPSCOPE_SAMPLER_H

#include "../base/perf_ring.h"

#include <signal.h>
#include <time.h>

enum sampler_clock { SAMPLER_NONE, SAMPLER_PERF, SAMPLER_CPUTIME };

enum { MOST_SAMPLERS = 256 };

struct sampler {
    enum sampler_clock clock; /* NONE: not open */
    pid_t tid;
    uint64_t random;
    unsigned left;            /* samples until the period is drawn anew */
    struct perf_ring ring;    /* PERF */
    timer_t timer;            /* CPUTIME; and what its handler noted */
    int is_masked;            /* the thread blocks its signal */
    uintptr_t *noted;
    uint64_t head, read;
    uint64_t lost;            /* there was no room for so many */
};

/* How samples are taken here, which the calling thread tries. Returns NULL, or why none can be had. */
const char *sampler_prepare(unsigned rate_hz);
int sampler_uses_signal(void);

/* NULL when there is none to be had for that thread. Not by several threads at once, as all below. */
struct sampler *sampler_open(pid_t tid);
void sampler_close(struct sampler *sampler);
/* In a child of fork: it has none. */
void sampler_forget_all(void);
/* The signal is left as it was. */
void sampler_end(void);

/* The program is about to change the calling thread's signal mask. For signal handlers too. */
void sampler_mask_changes(int how, const sigset_t *set);

/* Whether the next sampler_next() has one. */
static inline int sampler_has_more(const struct sampler *sampler)
{
    return sampler->clock == SAMPLER_PERF ? perf_ring_has_more(&sampler->ring)
                                          : __atomic_load_n(&sampler->head, __ATOMIC_ACQUIRE) != sampler->read;
}

/* The next instruction; 0 when there is none. */
int sampler_next(struct sampler *sampler, uintptr_t *address);

#endif
