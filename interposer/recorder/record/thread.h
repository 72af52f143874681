/* What the recorder keeps for each thread. */
#ifndef LAPSCOPE_THREAD_H
#define LAPSCOPE_THREAD_H

#include "../../../schema/spool.h"
#include "../base/clock.h"
#include "../base/intern.h"
#include "../spool/writer.h"

#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { MAX_THREADS = 4096, COMM_CACHE = 16, NESTINGS = 16 };

struct meter;
struct injector;
struct reach;
struct memory_ranges;
struct profile;
struct span;
struct operation;
struct callsite_cache;
struct cells;
struct comm;

enum { ENDS_WITH_MORE = 1 /* meter, reach */, ENDS_WITH_SAMPLE = 2 };

struct request_slot {
    uint64_t key;             /* the request's handle; meaningful when live is set */
    struct spool_live *live;  /* the first of those that have it */
    struct spool_live *last;  /* of them */
};

/* Live requests that this thread posted, by handle. Open addressing, linear probing, no tombstones. */
/* Entries of one chunk. */
struct live_entries {
    const struct spool_live *first;
    size_t count;
    struct live_entries *before;
};

struct request_index {
    struct request_slot *slots;
    uint32_t mask, count;
    uint32_t lock;           /* taken only under MPI_THREAD_MULTIPLE */
};

/* A wrapper was called from `caller` while another, called from `inside`, was under way. */
struct nesting {
    uintptr_t caller, inside; /* return addresses */
};

struct thread {
    uintptr_t inside;        /* frame of the wrapper that this thread is in; 0: none */
    uintptr_t inside_return; /* that wrapper's return address */
    unsigned number;
    struct spool_stream stream;
    struct meter *meter;                   /* NULL: nothing but time is measured */
    struct injector *injector;             /* NULL: nothing is injected */
    struct reach *reach;                   /* NULL: no buffers are watched */
    struct memory_ranges *memory_ranges;   /* NULL: no driver of an accelerator was seen in the process */
    int gives_buffers;                     /* one of these two: wrappers give them the buffers of calls */
    struct profile *profile;               /* NULL: no samples are taken */
    struct cells *cells;                   /* sums of LAPSCOPE_RECORD=job, which has no others; NULL: tallies */
    int ends_slowly;                       /* the end of a request concerns more than its record: ENDS_WITH_ */
    uint64_t record_room;                  /* what the records of a row may take, with what the meter adds */
    struct spool_thread_state *state;      /* in the spool */
    struct spool_live *free_live;          /* linked through owner */
    struct spool_live *returned_live;      /* ended by other threads; taken over when free_live runs out */
    struct live_entries *live_entries;     /* all that it has, free ones among them: for profile/ */
    struct request_index index;
    struct callsite_cache *callsites;
    struct intern_table operations, outcomes, tallies;
    struct spool_chunk *tally_chunk;
    uint32_t tally_used;                   /* entries of tally_chunk */
    uint64_t at_once_ticks;                /* a send that takes less has not waited */
    struct {
        uint64_t key;
        unsigned generation;
        struct comm *comm;
    } comms[COMM_CACHE];
    struct nesting nestings[NESTINGS];
    uint64_t next_look;      /* ticks: when record.c looks around again: at next_facts or slot_end */
    uint64_t next_facts;
    struct {                               /* nap.c: the look under way */
        uint64_t began, calls;             /* ticks; the thread's calls until then */
        unsigned nap;                      /* behind which nap */
    } look;
    /* sample.h */
    uint64_t slot_end;
    uint8_t left_out;                      /* SPOOL_LIVE_LEFT_OUT: what begins now is only summed up; 0: it is recorded */
    uint64_t left_out_since;               /* ticks; valid with left_out */
    struct skipped *skipped;               /* operations that were left out since then */
    uint64_t call_left_out;                /* begin of the last call that was only summed up, and where */
    struct spool_tally *call_tally;
    void *scratch;           /* copies of the application's request arrays, and statuses that it did not want */
    uint64_t scratch_bytes;
    struct thread *next_ended; /* see thread.c */
};

enum recorder_state { RECORDER_OFF, RECORDER_ASLEEP /* nap.h */, RECORDER_ON, RECORDER_PAUSED /* by MPI_Pcontrol(0) */ };

#pragma GCC visibility push(hidden) /* on the declarations: no way round through a table of addresses */
extern enum recorder_state recorder_state;
extern int stamps_are_plain;                   /* the time-stamp counter, no meters, nothing injected */
extern uint64_t large_posts;                   /* from so many bytes on posts are told of all the same */
extern int recorder_multiple;                  /* MPI_THREAD_MULTIPLE was granted */
extern struct thread *threads[MAX_THREADS];
extern unsigned thread_count;
extern __thread struct thread *current_thread __attribute__((tls_model("initial-exec")));
#pragma GCC visibility pop

/* What injection does, where there is any; all NULL otherwise. It makes a thread's injector when the thread is first met, and is
 * told when the thread ends, whose injector another may take over then; of real calls outside of their stamps; and of requests: a
 * persistent one was made; one was posted from that return address, or started; one with SPOOL_LIVE_INJECTED or
 * SPOOL_LIVE_REDUCES, which only these set, is over. `is_busy` is asked whether calls concern it now. `starved`: so many more ticks
 * the rank could have run and had no processor. */
struct thread_hooks {
    struct injector *(*first_call)(struct thread *t);
    void (*thread_ended)(struct injector *injector);
    void (*enter)(struct injector *injector);
    void (*leave)(struct injector *injector);
    void (*made)(struct injector *injector, struct spool_live *live);
    void (*posted)(struct injector *injector, struct spool_live *live, struct operation *operation, uintptr_t caller);
    void (*ended)(struct spool_live *live);
    int (*is_busy)(void);
    void (*starved)(uint64_t ticks);
};

extern struct thread_hooks thread_hooks;

/* What watching buffers does, where it is asked for; all NULL otherwise. It is told of threads likewise, of real calls outside of
 * their stamps, of persistent requests that were started, and of requests that ended: how (enum spool_ended), and with how many bytes. */
struct reach_hooks {
    struct reach *(*first_call)(struct thread *t);
    void (*thread_ended)(struct reach *reach);
    void (*taken_over)(struct reach *reach);
    void (*enter)(struct reach *reach);
    void (*leave)(struct reach *reach);
    void (*started)(struct reach *reach, struct spool_live *live);
    void (*ended)(struct reach *reach, const struct span *span, struct spool_live *live, int ended,
                  uint64_t bytes);
};

extern struct reach_hooks reach_hooks;

/* What taking samples does, where it is asked for; all NULL otherwise. It is told of threads and of real calls likewise. */
struct profile_hooks {
    struct profile *(*first_call)(struct thread *t);
    void (*thread_ended)(struct profile *profile);
    void (*taken_over)(struct profile *profile);
    void (*enter)(struct profile *profile);
    void (*leave)(struct profile *profile);
};

extern struct profile_hooks profile_hooks;

/* At least `bytes` of scratch, contents undefined; NULL when there is no memory. */
void *thread_scratch(struct thread *t, uint64_t bytes);

#define ALWAYS_INLINE __attribute__((always_inline))

/* The canonical frame address: the stack pointer of whoever called this function, after the call. On aarch64 clang takes the first
 * of these names for the frame pointer, wherever in the frame that points. */
#if defined(__clang__) && defined(__aarch64__)
#define CANONICAL_FRAME() ((uintptr_t)__builtin_sponentry())
#else
#define CANONICAL_FRAME() ((uintptr_t)__builtin_dwarf_cfa())
#endif

/* Time inside a recorded call. One call more is seen behind all that was stored before it (spool.h). */
static inline void thread_was_inside(struct thread *t, uint64_t ticks)
{
    t->state->mpi_ticks += ticks;
    __atomic_store_n(&t->state->calls, t->state->calls + 1, __ATOMIC_RELEASE);
}

#endif
