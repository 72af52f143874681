#define _GNU_SOURCE
#include "elf_table.h"

#include <string.h>

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

int is_own_object(const struct dl_phdr_info *object)
{
    return object->dlpi_addr == (ElfW(Addr))&__ehdr_start;
}

int read_table(const ElfW(Dyn) *dynamic, ElfW(Addr) base, struct table *table)
{
    memset(table, 0, sizeof *table);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        ElfW(Addr) at = dynamic->d_un.d_ptr;
        if (at < base) /* glibc has made most of them addresses, not those of the vDSO */
            at += base;
        if (dynamic->d_tag == DT_SYMTAB)
            table->symbols = (ElfW(Sym) *)at;
        else if (dynamic->d_tag == DT_STRTAB)
            table->names = (const char *)at;
        else if (dynamic->d_tag == DT_GNU_HASH)
            table->gnu_hash = (const uint32_t *)at;
    }
    return table->symbols && table->names && table->gnu_hash;
}

uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

uint32_t symbol_count(const struct table *table)
{
    uint32_t bucket_count = table->gnu_hash[0], first = table->gnu_hash[1], last = 0;
    const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(table->gnu_hash + 4) + table->gnu_hash[2]);
    const uint32_t *chain = buckets + bucket_count;
    for (uint32_t i = 0; i < bucket_count; i++)
        last = buckets[i] > last ? buckets[i] : last;
    while (last >= first && last != 0 && !(chain[last - first] & 1))
        last++;
    return last < first ? first : last + 1;
}

/* Sanitizers have a strcmp that may not be called before they are up. */
static int is_same(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

ElfW(Sym) *find_symbol(const struct table *table, const char *name, uint32_t hash)
{
    uint32_t bucket_count = table->gnu_hash[0], first = table->gnu_hash[1], bloom_count = table->gnu_hash[2];
    enum { WORD_BITS = 8 * sizeof(ElfW(Addr)) };
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table->gnu_hash + 4);
    ElfW(Addr) word = bloom[hash / WORD_BITS % bloom_count];
    uint32_t second_bit = hash >> table->gnu_hash[3];
    if (!(word >> (hash % WORD_BITS) & word >> (second_bit % WORD_BITS) & 1) || bucket_count == 0)
        return NULL;
    const uint32_t *buckets = (const uint32_t *)(bloom + bloom_count);
    const uint32_t *chain = buckets + bucket_count;
    uint32_t i = buckets[hash % bucket_count];
    for (; i >= first && i != 0; i++) {
        ElfW(Sym) *symbol = &table->symbols[i];
        if ((chain[i - first] | 1) == (hash | 1) && is_same(table->names + symbol->st_name, name))
            return symbol->st_shndx != SHN_UNDEF ? symbol : NULL;
        if (chain[i - first] & 1)
            break;
    }
    return NULL;
}

void *defined_in_object(const struct dl_phdr_info *object, const char *name, uint32_t hash)
{
    struct table table;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Dyn) *dynamic = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC || !read_table(dynamic, object->dlpi_addr, &table))
            continue;
        const ElfW(Sym) *symbol = find_symbol(&table, name, hash);
        return symbol ? (void *)(object->dlpi_addr + symbol->st_value) : NULL;
    }
    return NULL;
}
