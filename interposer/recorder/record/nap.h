/*
 * LAPSCOPE_RECORD=off: where nothing can be done for a program, the recorder naps. It looks at the calls for some milliseconds,
 * and if they are so many that looking costs something, and none of them concerns injection, then the calls pass by for twenty times as
 * long. What a nap overlooks, the next look may see: programs repeat themselves. Communicators and persistent requests are known
 * also when they were made meanwhile, requests are not; one that ended meanwhile is replaced when its handle comes again.
 *
 * Knowing a request costs tens of nanoseconds, of which a program with small messages gets nothing. A program that
 * posted a large request within the last second is not napped through.
 */
#ifndef LAPSCOPE_NAP_H
#define LAPSCOPE_NAP_H

#include <stdint.h>

struct thread;

/* Recording begins, and may nap. */
void nap_start(void);

/* A thread is behind one of its calls; `now` in ticks. Begins a nap when it is time for one. */
void nap_look(struct thread *t, uint64_t now);

/* The calls of this many are counted before the clock is asked: a part of the nap's cost that cannot be seen. */
enum { NAP_CALLS = 256 };

extern unsigned nap_calls __attribute__((visibility("hidden"))); /* until the clock is asked again */

/* So many calls have passed by: whether the nap is over. */
int nap_is_over(void);

#endif
