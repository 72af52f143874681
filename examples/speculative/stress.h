/* Random sends and receives whose outcome is known beforehand. */
#ifndef STRESS_H
#define STRESS_H

#include "layer.h"

struct stress {
    uint64_t seed;
    int seeds;    /* so many, one after the other */
    int messages; /* in each direction */
    enum protocol first, last;
};

/* In both processes, after start_transport. What is wrong ends the program. */
void run_stress(const struct stress *stress);

#endif
