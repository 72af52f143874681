/* A thread's watcher: what it watches, for whom, and what that costs. */
#ifndef LAPSCOPE_WATCHER_H
#define LAPSCOPE_WATCHER_H

#include "../base/clock.h"
#include "../record/operation.h"
#include "buffer.h"
#include "copy.h"
#include "watchpoint.h"

enum { POINTS = 4, BATCH = 2 * HITS_MOST, COPY_HITS = 3 };

/* Call sites and peers take turns: what has been watched often waits for others. */
struct turn {
    uint64_t hash;                     /* see intern.h */
    struct {
        const struct operation *operation;
        uint64_t side;
    } key;
    uint64_t taken;
    uint64_t delay;                    /* ticks to let pass before a word is watched that is written often; 0: none */
    uint64_t patience;                 /* ticks after which a watch makes room for another; longer each time that it has to */
    int is_in_vain;                    /* no call of MPI's comes in between, at which a watch could begin */
};

/* The access that counts: of a receive the first, of a send the last. */
struct touch {
    int is_known, by_mpi;
    uint64_t ticks;                    /* when */
    uint64_t mpi_ticks;                /* the thread's time inside MPI up to then */
    uint64_t own;                      /* what watching had cost the thread up to then, this access left out */
    uintptr_t frames[2];               /* of the instruction behind it, and its caller where that is certain */
    unsigned frame_count;
    int is_named;
    uint32_t path;                     /* where it is named: the frames' id in the spool; 0: none */
    struct watchpoint_hit hit;
};

/* A buffer that MPI lets go of, and what for. */
struct subject {
    enum spool_watch_side side;
    const struct operation *operation;
    uint64_t begin;                    /* ticks: of the post, or of the blocking call */
    const void *given;                 /* the address that MPI was given */
    struct buffer buffer;
};

struct instant {
    uint64_t ticks, ns;                /* ns: CLOCK_MONOTONIC */
};

enum watch_state { WATCH_FREE, WATCH_WAITING, WATCH_ON };

struct watch {
    struct watchpoint point;
    enum watch_state state;
    struct subject subject;
    struct turn *turn;
    struct word word;
    int on_stack;
    uint64_t due;                      /* waiting: when to begin */
    uint64_t edge;                     /* ticks: when MPI let go */
    struct instant since;              /* when watching began */
    uint64_t mpi_ticks, own;           /* the thread's at the edge, or when watching began */
    int has_returned;                  /* on the stack: a hit has shown it */
    uint64_t alive;                    /* on the stack: when its function was last seen not to have returned */
    struct copy *copy;                 /* one step further: the word is where it was copied to, or from; NULL: it is the buffer's */
    uint64_t contents;                 /* of that place when MPI let go of the buffer */
    int was_copied;                    /* a receive's copy was seen again; of a send, when MPI was last entered */
    uint64_t looked;                   /* at that touch of a send the copy was looked for */
    struct touch touch;
};

/* A thread's own. */
struct watcher {
    struct thread *thread;
    struct watch watches[POINTS];      /* those of sends first */
    unsigned send_points, points;      /* as many as could be had */
    struct intern_table turns;         /* struct turn */
    uint64_t taken;                    /* by all of them */
    struct copies copies;
    uint64_t random;
    uint64_t entered;                  /* ticks: the call under way */
    unsigned active;                   /* watches that are not free */
    uint64_t own;                      /* ticks that watching has cost this thread */
    uint64_t own_at_edge;              /* the same when the call under way came back from MPI */
    uint64_t batch[BATCH];             /* when words were hit since the last call, in the kernel's nanoseconds */
    unsigned batched;
};

static inline uint64_t watcher_mpi_ticks(const struct watcher *watcher)
{
    return watcher->thread->state->mpi_ticks;
}

/* The same instant on the recorder's clock and on the kernel's own, as hits have it. */
static inline struct instant instant_now(void)
{
    return (struct instant){clock_now(), clock_nanoseconds(CLOCK_MONOTONIC)};
}

/* What watching costs, for all threads; in ticks. */
struct watch_cost {
    uint64_t began, spent;             /* spent: atomic */
    uint64_t hit, before, set;         /* of a hit: all, and before the kernel takes its time */
};
extern struct watch_cost watch_cost;

/* Ticks that were spent on watching, in that thread. */
void watcher_spend(struct watcher *watcher, uint64_t ticks);

void watcher_init(struct watcher *watcher, struct thread *t);
/* Watchpoints for the calling thread, as many as can be had; returns 0, or an errno value when there is none. */
int watcher_open(struct watcher *watcher);
void watcher_close(struct watcher *watcher);
/* In a child of fork. */
void watcher_forget(struct watcher *watcher);

#endif
