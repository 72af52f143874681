/* What a sum is of. */
#ifndef LAPSCOPE_TALLY_KEY_H
#define LAPSCOPE_TALLY_KEY_H

#include "../../../schema/spool.h"

#include <string.h>

/* What an entry is of: its first eight bytes, which are compared at once. */
struct tally_key {
    uint16_t call_plus_1;
    uint8_t size_class, reason;
    uint32_t path;
};

static inline uint64_t tally_word(struct tally_key key)
{
    return key.call_plus_1 | (uint64_t)key.size_class << 16 | (uint64_t)key.reason << 24 | (uint64_t)key.path << 32;
}

static inline int tally_is(const struct spool_tally *tally, uint64_t word)
{
    uint64_t own;
    memcpy(&own, tally, sizeof own);
    return own == word;
}

#endif
