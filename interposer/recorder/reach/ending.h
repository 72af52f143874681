/* How a watch ends, and the row that it leaves. */
#ifndef LAPSCOPE_ENDING_H
#define LAPSCOPE_ENDING_H

#include "watcher.h"

/* Of copies: what the memory tells now, before MPI writes to it. */
void watch_look_further(struct watcher *watcher, struct watch *watch);

/* Without a row. */
void watch_free(struct watcher *watcher, struct watch *watch);

/* A receive's first touch is known. */
void watch_end_touched(struct watcher *watcher, struct watch *watch);

/* A buffer is sent again: its last write before is known, or that there was none since it was watched. */
void watch_end_sent(struct watcher *watcher, struct watch *watch, const struct operation *operation, uint64_t begin,
                    uint64_t mpi_ticks);

/* Nobody has touched the word. `now` and the thread's time inside MPI then, in ticks. */
void watch_let_go(struct watcher *watcher, struct watch *watch, enum spool_let_go why, uint64_t now, uint64_t mpi_ticks);

#endif
