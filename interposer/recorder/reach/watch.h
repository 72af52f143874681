/*
 * Words of buffers that a thread watches, from the moment at which MPI let go of a buffer: of what was received until its
 * first touch, of what was sent until the next send from it. One row of the table watch for each.
 *
 * What hit is read where the thread calls MPI next, and where it comes back from there: so the time inside MPI before the
 * hit is known, and whether it was MPI that touched.
 */
#ifndef LAPSCOPE_WATCH_H
#define LAPSCOPE_WATCH_H

#include "watcher.h"

/* MPI has let go of a buffer at `edge` (ticks). */
void watcher_begin(struct watcher *watcher, const struct subject *subject, struct turn *turn, uint64_t edge);

/* The thread enters MPI, or comes back from it. */
void watcher_enter(struct watcher *watcher, uint64_t now);
void watcher_leave(struct watcher *watcher);

/* A call that began at `begin`, with the thread's time inside MPI up to then, was given a buffer: what is watched of it is
 * over. `operation` posted it; NULL: it cannot be told. */
void watcher_given(struct watcher *watcher, enum spool_watch_side side, const struct known_buffer *given,
                   const struct operation *operation, uint64_t begin, uint64_t mpi_ticks);

/* A receive into that buffer has ended: whoever moved the bytes, that was a write. */
void watcher_filled(struct watcher *watcher, const struct known_buffer *given, uint64_t end);

/* Nothing is watched any more; returns how many buffers that were sent were not sent again. */
unsigned watcher_end(struct watcher *watcher);

#endif
