/* Sums instead of rows: unsuccessful tests, and everything once the spool is full. They lie in the spool. */
#ifndef LAPSCOPE_TALLY_H
#define LAPSCOPE_TALLY_H

#include "../base/call.h"
#include "callsite.h"
#include "tally_key.h"
#include "thread.h"

int tally_init(struct thread *t);

/* k for bytes in [2^(k-1), 2^k); 0: no bytes. */
static inline unsigned size_class_of(uint64_t bytes)
{
    return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}

/* The least bytes of their size class. */
static inline uint64_t size_floor(uint64_t bytes)
{
    return bytes ? (uint64_t)1 << (size_class_of(bytes) - 1) : 0;
}

/* A fresh place in the spool, which is in use once its first 16 bits are not 0; NULL when there is none. */
struct spool_tally *tally_new_place(struct thread *t);

struct spool_tally *tally_find(struct thread *t, enum call call, uint32_t path, uint64_t bytes, enum spool_tally_reason reason);

/* The same as tally_find. `last` remembers the entry for the next time; it belongs to the same thread. */
static inline struct spool_tally *tally_again(struct thread *t, struct spool_tally **last, enum call call, uint32_t path,
                                              uint64_t bytes, enum spool_tally_reason reason)
{
    uint64_t word = tally_word((struct tally_key){(uint16_t)(call + 1), (uint8_t)size_class_of(bytes), (uint8_t)reason, path});
    if (LIKELY(*last && tally_is(*last, word)))
        return *last;
    return *last = tally_find(t, call, path, bytes, reason);
}

/* An unsuccessful test from `site`. */
void tally_unsuccessful_test(struct thread *t, enum call call, struct callsite *site, uint64_t ticks);

#endif
