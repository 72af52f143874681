/*
 * Call paths, exact and nearly free.
 *
 * A path is unwound once. What is remembered of it is where on the stack each return address stood, and its value. A
 * later call from the same return address with the same stack pointer has the same path when those words are unchanged:
 * frame 0 is the function of the return address; its frame's size follows from that address unless it is addressed
 * through the frame pointer, and then the saved frame pointer is compared too; so the next return address stands where
 * it stood, and is the same; and so on outwards. Of Python, whose functions take no machine stack of their own, the
 * identity of what the thread is inside of has to be the same, too.
 */
#ifndef LAPSCOPE_CALLSITE_H
#define LAPSCOPE_CALLSITE_H

#include "../python/python.h"
#include "thread.h"
#include "unwind.h"

struct spool_tally;
struct python_room;

/* Where a wrapper was called from. CALLER() only in the wrapper itself, which must keep a frame pointer. */
struct caller {
    uintptr_t return_address;
    uintptr_t frame;         /* canonical frame address of the wrapper: the caller's stack pointer after the call */
#if defined(__aarch64__)
    uintptr_t frame_pointer; /* of the caller: saved at the far end of the wrapper's frame, and so no word to remember */
#endif
};
#if defined(__aarch64__)
#define CALLER()                                                                                \
    ((struct caller){(uintptr_t)__builtin_return_address(0), CANONICAL_FRAME(),                 \
                     *(const uintptr_t *)__builtin_frame_address(0)})
#else
#define CALLER() ((struct caller){(uintptr_t)__builtin_return_address(0), CANONICAL_FRAME()})
#endif

static inline int caller_is(struct caller one, struct caller other)
{
#if defined(__aarch64__)
    if (one.frame_pointer != other.frame_pointer)
        return 0;
#endif
    return one.return_address == other.return_address && one.frame == other.frame;
}

struct callsite_check {
    const uintptr_t *word;
    uintptr_t value;
};

enum { CHECKS_AT_ONCE = 4 };

struct callsite {
    struct caller caller;
    uint64_t python;                   /* identity of the lines of Python that it is of; 0: none */
    uint32_t path;                     /* id in the spool; 0: none */
    uint16_t checks;                   /* a multiple of CHECKS_AT_ONCE: the last one is repeated */
    uint16_t size;                     /* there is room for as many as go with it: see CALLSITE_SIZE_CHECKS */
    struct operation *last_operation;  /* what was last done from here: most often the next one too */
    struct operation *last_announced;  /* the same for what span_begin says, and for the receive of MPI_Sendrecv */
    struct operation *last_receive;
    struct spool_tally *last_tally, *last_summary; /* of unsuccessful tests; of calls without rows */
    struct callsite *next_retired;
    struct callsite_check check[];
};

enum { CALLSITE_BUCKETS = 1024, CALLSITE_WAYS = 4, CALLSITE_SIZES = 17, CALLSITE_SIZE_CHECKS = 16, ENDLESS_PLACES = 64 };

/* Sites of one size that have fallen out of the cache, the longest ago first. */
struct retired_callsites {
    struct callsite *first, *last;
    unsigned count;
};

/* A place whose call paths vary without end: see LAPSCOPE_CALLPATH_MB. */
struct endless_place {
    uint64_t at;                       /* return address, and the innermost line of Python */
    uint32_t path;                     /* of that frame alone */
    uint32_t cut;                      /* how often in a row */
};

struct callsite_cache {
    struct callsite *bucket[CALLSITE_BUCKETS][CALLSITE_WAYS]; /* the most recently used first */
    uintptr_t stack_begin, stack_end;  /* of the thread; only words on it are ever read */
    struct callsite *fixed;            /* for paths that cannot be remembered */
    struct unwound *unwound;           /* the path that is being taken: not on the program's stack, which may be small */
    struct unwind_room *room;          /* for taking it */
    struct python_room *python_room;   /* likewise, where there is Python */
    struct retired_callsites retired[CALLSITE_SIZES];
    struct endless_place endless[ENDLESS_PLACES];
    uint64_t misses;
    size_t site_bytes;                 /* of all sites, retired ones among them */
    unsigned hand;                     /* the bucket from which the next one is taken where there are too many */
    unsigned paths_gone;               /* see path.h */
};

struct callsite_cache *callsite_cache_create(void);
/* The calling thread goes on with the cache of one that has ended. */
void callsite_cache_take_over(struct callsite_cache *cache);
struct callsite *callsite_miss(struct thread *t, struct caller caller, struct python_identity python, unsigned bucket);

/* Where paths have gone (path.h), sites of the thread that had them are forgotten. */
void callsite_heed_gone_paths(struct callsite_cache *cache);

/* Whether a function of ours whose frame holds that address is among the callers: slow. */
int callsite_passes(uintptr_t frame);

/* Whose an instruction is: the C library's; that of an MPI or of what it is made of; the dynamic linker's or the recorder's. */
int callsite_is_in_libc(uintptr_t address);
int callsite_is_in_mpi(uintptr_t address);
int callsite_is_in_loader(uintptr_t address);

/* Reads LAPSCOPE_CALLPATH and LAPSCOPE_CALLPATH_DEPTH. Without paths, call sites are still told apart by return
 * address, for what they remember, but all have path 0. */
void callsite_configure(void);

/* AddressSanitizer is not asked: in a frame that stands where another stood, the words looked at can be anything. */
static inline __attribute__((no_sanitize("address"))) int callsite_matches(const struct callsite *site, struct caller caller,
                                                                              uint64_t python)
{
    if (!caller_is(site->caller, caller) || site->python != python)
        return 0;
    uintptr_t differing = 0;
    const struct callsite_check *check = site->check;
    for (const struct callsite_check *end = check + site->checks; check < end; check += CHECKS_AT_ONCE)
#pragma GCC unroll 4
        for (int i = 0; i < CHECKS_AT_ONCE; i++)
            differing |= *check[i].word ^ check[i].value;
    return differing == 0;
}

static inline unsigned callsite_bucket(struct caller caller, uint64_t python)
{
    return (unsigned)(((caller.return_address ^ caller.frame >> 4 ^ python) * 0x9e3779b97f4a7c15u) >> 54);
}

/* Where no Python is looked at: the site that is the last one of its bucket, or NULL. */
static inline ALWAYS_INLINE struct callsite *callsite_again(struct thread *t, struct caller caller)
{
    struct callsite *site = t->callsites->bucket[callsite_bucket(caller, 0)][0];
    return LIKELY(site && callsite_matches(site, caller, 0)) ? site : NULL;
}

static inline struct callsite *callsite_of(struct thread *t, struct caller caller)
{
    struct callsite_cache *cache = t->callsites;
    struct python_identity python = {0, 0};
    if (UNLIKELY(python_is_on))
        python = python_identity();
    unsigned bucket = callsite_bucket(caller, python.all);
    struct callsite *site = cache->bucket[bucket][0];
    if (LIKELY(site && callsite_matches(site, caller, python.all)))
        return site;
    return callsite_miss(t, caller, python, bucket);
}

#endif
