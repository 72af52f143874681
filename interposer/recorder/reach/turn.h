/* Whose turn it is to be watched: the share that is drawn, the budget, free watchpoints, and fairness among operations. */
#ifndef LAPSCOPE_TURN_H
#define LAPSCOPE_TURN_H

#include "watch.h"

uint64_t turn_random(struct watcher *watcher);

/* A free watch for a side; one that has lasted too long is let go for it. NULL when there is none. */
struct watch *turn_free_watch(struct watcher *watcher, enum spool_watch_side side);

/* watch.c: ends a watch whose word nobody has touched. `now` and the thread's time inside MPI then, in ticks. */
void watch_let_go(struct watcher *watcher, struct watch *watch, enum spool_let_go why, uint64_t now, uint64_t mpi_ticks);

#endif
