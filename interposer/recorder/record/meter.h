/*
 * What is measured of a thread's calls besides their time: CPU time (LAPSCOPE_CPU_TIME) and counters
 * (LAPSCOPE_COUNTERS). A thread has a meter only where one of them is asked for.
 *
 * Counters are read directly before and after the real call. What is laid to a request is a difference of what the
 * posting thread had counted outside of MPI: kept in ordinary memory, as a request that never ends has none anyway.
 */
#ifndef LAPSCOPE_METER_H
#define LAPSCOPE_METER_H

#include "../../../schema/spool.h"

struct meter;
struct thread;

/* Bytes that a row's measures take in the spool, at the most. */
enum { METER_ROOM = 256 };

/* Whether threads have meters; asked once, after counters_open(). */
int meters_wanted(void);

/* For the calling thread; NULL when none is wanted, or when there is no memory. */
struct meter *meter_create(void);

/* The calling thread, whose it is, ends; another takes it over. */
void meter_thread_ended(struct meter *meter);
void meter_take_over(struct meter *meter);

/* Directly before and behind the real call. */
void meter_enter(struct meter *meter);
void meter_leave(struct meter *meter);

/* Adds what the meter's thread has counted outside of MPI so far, up to the entry of the call that it is in. Returns 0 when that
 * is not all of it. */
int meter_add_outside(const struct meter *meter, int64_t values[SPOOL_MAX_COUNTERS]);

/* A request was posted: remembers what has been counted outside of MPI so far. */
void meter_post(struct meter *meter, const struct spool_live *live);

/* What belongs to the record of the call just made, and to that of a request which it completed and this thread had
 * posted: written at `at`, where METER_ROOM bytes must be free. Return where to go on. */
unsigned char *meter_put_call(const struct meter *meter, unsigned char *at);
unsigned char *meter_put_request(struct meter *meter, const struct spool_live *live, unsigned char *at);

#endif
