/*
 * Counters that PAPI offers: hardware's, the kernel's, and those that software defines. The only file that knows PAPI,
 * whose library is loaded when LAPSCOPE_COUNTERS asks for something, and not before.
 */
#ifndef LAPSCOPE_COUNTERS_H
#define LAPSCOPE_COUNTERS_H

#include "../../../schema/spool.h"

/* An event that was asked for. */
struct counter {
    char name[256], unit[64], description[256];
    char problem[160];       /* why it cannot be counted; empty: it is */
};

/* A thread's own. */
struct counters;

/* Finds the events that `wanted` names, separated by commas; says, when `speak`, which of them cannot be counted and
 * what to do. To be called once, before any thread counts. */
void counters_open(const char *wanted, int speak);

/* Event number `i` of those that were asked for, from 0; NULL when there are no more. */
const struct counter *counters_asked(unsigned i);

/* How many are counted. Values are in the order in which they were asked for, those with a problem left out. */
unsigned counters_counted(void);

/* Starts counting on the calling thread; NULL when nothing is counted, or there is no memory. */
struct counters *counters_start(void);

/* The calling thread, which has started it, ends. What is started again is of the thread that calls then. */
void counters_stop(struct counters *counters);
void counters_start_again(struct counters *counters);

/* The calling thread's counts so far. Returns 0 when they cannot be had. */
int counters_read(struct counters *counters, int64_t values[SPOOL_MAX_COUNTERS]);

#endif
