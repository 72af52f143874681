/*
 * What a rank got of a processor: its times mean little where it had to share one.
 *
 * Only the kernel knows: it is asked how long the thread that called MPI_Init ran, and how long it could have run and
 * did not. Its file stays open, but an answer takes microseconds; so it is asked where the clock is refreshed, behind a
 * comparison that is there anyway, and outside of the call's own time.
 */
#ifndef LAPSCOPE_PROCESSOR_H
#define LAPSCOPE_PROCESSOR_H

#include "thread.h"

/* Notes what the calling thread has had so far; MPI_Init has returned. From then on its `starvation` is recorded. */
void processor_begin(struct thread *t);

/* Records the interval since the last time, when the thread could have run in it and had no processor. Reads a
 * file, 2 us: for now and then. `now` in ticks. Nothing for other threads than that of processor_begin(). */
void processor_look(struct thread *t, uint64_t now);

/* Defines "processor": what that thread has got since, nanoseconds on a processor and nanoseconds able to run without
 * one, how often it let go of it and how often it was taken away, how many processors it may use and how many there
 * are, and the most memory in bytes that its process had, with tabs between them. MPI_Finalize is about to begin. Nothing where the kernel does not tell. */
void processor_define(struct thread *t);

#endif
