/* Symbol tables of what is loaded, as they lie in memory: read where nothing of the loader's may be called. */
#ifndef LAPSCOPE_ELF_TABLE_H
#define LAPSCOPE_ELF_TABLE_H

#include <link.h>
#include <stdint.h>

struct table {
    ElfW(Sym) *symbols;
    const char *names;
    const uint32_t *gnu_hash;
};

/* The table that a dynamic section names; 0 when it has none of the GNU kind. */
int read_table(const ElfW(Dyn) *dynamic, ElfW(Addr) base, struct table *table) __attribute__((visibility("hidden")));

/* Of a symbol's name, as the tables have it. */
uint32_t hash_of(const char *name) __attribute__((visibility("hidden")));

/* How many symbols the table has. */
uint32_t symbol_count(const struct table *table) __attribute__((visibility("hidden")));

/* The definition of a name in an object: its GNU hash table has buckets, chains and in front of them a Bloom filter. */
ElfW(Sym) *find_symbol(const struct table *table, const char *name, uint32_t hash) __attribute__((visibility("hidden")));

/* Where an object defines that name; NULL: it does not. */
void *defined_in_object(const struct dl_phdr_info *object, const char *name, uint32_t hash)
    __attribute__((visibility("hidden")));

/* Whether it is this library. */
int is_own_object(const struct dl_phdr_info *object) __attribute__((visibility("hidden")));

#endif
