/* Whose turn it is to be watched: the share that is drawn, the budget, free watchpoints, and fairness among operations. */
#ifndef LAPSCOPE_TURN_H
#define LAPSCOPE_TURN_H

#include "watcher.h"

uint64_t turn_random(struct watcher *watcher);

/* A free watch for a side; one that has lasted too long is let go for it. NULL when there is none. */
struct watch *turn_free_watch(struct watcher *watcher, enum spool_watch_side side);

/* Whether a buffer's turn has come: the share, the budget, a free watchpoint. LEFT_OUT_NOT: it has, and `turn` is set. */
enum left_out watcher_draws(struct watcher *watcher, const struct operation *operation, enum spool_watch_side side,
                            struct turn **turn);

#endif
