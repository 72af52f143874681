/* Hash tables of interned entries, one writer each. An entry's first member is its hash (never 0). */
#ifndef LAPSCOPE_INTERN_H
#define LAPSCOPE_INTERN_H

#include <stddef.h>
#include <stdint.h>

/* An open-addressing table of pointers to interned entries; each entry starts with its own hash. */
struct intern_table {
    void **entries;
    uint32_t mask, count;
};

static inline uint64_t intern_hash(const void *key, size_t bytes)
{
    const unsigned char *at = key;
    uint64_t hash = 0x9e3779b97f4a7c15u, word;
    for (size_t i = 0; i < bytes; i += sizeof word) { /* keys are padded to whole words */
        __builtin_memcpy(&word, at + i, sizeof word);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash | 1;
}

/* The slot of the entry with that hash whose key (behind the hash) equals `key`, or the empty slot where it belongs;
 * NULL when the table could not grow. */
void **intern_find(struct intern_table *table, uint64_t hash, const void *key, size_t key_bytes);

#endif
