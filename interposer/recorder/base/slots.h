/* Slots of time in which what is tried is on or off (LAPSCOPE_INJECT_AB): drawn at random, the same on all ranks of a job. */
#ifndef LAPSCOPE_SLOTS_H
#define LAPSCOPE_SLOTS_H

#include <stdint.h>

struct slots {
    uint64_t length_ns; /* 0: there are none, it is always on */
    uint64_t seed;      /* the job's, the same on all ranks */
};

/* As the options have them. */
struct slots slots_of(uint64_t seed);

/* Whether the slot that is now is on. */
int slots_are_on(const struct slots *slots);

#endif
