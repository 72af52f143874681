#include "intern.h"

#include "arena.h"

#include <string.h>

enum { SMALLEST = 256 };

static int grow(struct intern_table *table)
{
    uint32_t size = table->entries ? (table->mask + 1) * 2 : SMALLEST;
    void **fresh = arena_alloc(size * sizeof *fresh);
    if (!fresh)
        return 0;
    for (uint32_t i = 0; table->entries && i <= table->mask; i++) {
        void *entry = table->entries[i];
        if (!entry)
            continue;
        uint32_t at = (uint32_t)*(uint64_t *)entry & (size - 1);
        while (fresh[at])
            at = (at + 1) & (size - 1);
        fresh[at] = entry;
    }
    table->entries = fresh;
    table->mask = size - 1;
    return 1;
}

void **intern_find(struct intern_table *table, uint64_t hash, const void *key, size_t key_bytes)
{
    if ((!table->entries || table->count * 2 > table->mask) && !grow(table))
        return NULL;
    uint32_t at = (uint32_t)hash & table->mask;
    for (; table->entries[at]; at = (at + 1) & table->mask) {
        const uint64_t *entry = table->entries[at];
        if (*entry == hash && !memcmp(entry + 1, key, key_bytes))
            break;
    }
    return &table->entries[at];
}
