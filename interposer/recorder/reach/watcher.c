#include "watcher.h"

#include "../base/config.h"

#include <unistd.h>

struct watch_cost watch_cost __attribute__((visibility("hidden")));

void watcher_spend(struct watcher *watcher, uint64_t ticks)
{
    watcher->own += ticks;
    __atomic_fetch_add(&watch_cost.spent, ticks, __ATOMIC_RELAXED);
}

void watcher_init(struct watcher *watcher, struct thread *t)
{
    *watcher = (struct watcher){.thread = t, .random = clock_now() * 2 + 1 + (uint64_t)getpid() * 0x9e3779b97f4a7c15u};
    watcher->random |= 1;
}

int watcher_open(struct watcher *watcher)
{
    int error = 0;
    unsigned hits = config.reach_hits > COPY_HITS ? (unsigned)config.reach_hits : COPY_HITS;
    watcher->points = watcher->active = watcher->batched = 0;
    for (unsigned i = 0; i < POINTS; i++)
        watcher->watches[i] = (struct watch){.point.ring.fd = -1};
    while (watcher->points < POINTS && (error = watchpoint_open(&watcher->watches[watcher->points].point, hits)) == 0)
        watcher->points++;
    watcher->send_points = watcher->points / 2;
    return watcher->points ? 0 : error;
}

void watcher_close(struct watcher *watcher)
{
    for (unsigned i = 0; i < POINTS; i++)
        watchpoint_close(&watcher->watches[i].point);
}

void watcher_forget(struct watcher *watcher)
{
    for (unsigned i = 0; i < POINTS; i++)
        watchpoint_forget(&watcher->watches[i].point);
}
