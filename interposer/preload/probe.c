/*
 * Programs ask whether an MPI has a function, by weak symbols or dlsym: mpi4py's wheels, built for every MPI, take three
 * hundred functions this way. We export all functions that any MPI has, and must not make this MPI look richer than it is.
 *
 * So once the process has started, our C symbols become indirect ones (STT_GNU_IFUNC) in the copy of our symbol table in
 * memory: whoever binds to one from then on, calls probe() first, which answers NULL for what this MPI has not got. Not
 * in the file: libraries that are relocated before us would have glibc print a warning for each.
 */
#define _GNU_SOURCE
#include "symbols.h"

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef __GLIBC__ /* no indirect symbols: nobody asks */
void *lapscope_probe(unsigned symbol)
{
    (void)symbol;
    return NULL;
}
#else

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

struct table {
    ElfW(Sym) *symbols;
    const char *names;
    const uint32_t *gnu_hash;
};

static int read_table(const ElfW(Dyn) *dynamic, ElfW(Addr) base, struct table *table)
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

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* The definition of a name in an object: its GNU hash table has buckets, chains and in front of them a Bloom filter. */
static ElfW(Sym) *find_symbol(const struct table *table, const char *name, uint32_t hash)
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
        if ((chain[i - first] | 1) == (hash | 1) && !strcmp(table->names + symbol->st_name, name))
            return symbol->st_shndx != SHN_UNDEF ? symbol : NULL;
        if (chain[i - first] & 1)
            break;
    }
    return NULL;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* Where the trampolines are. */
static void *entries[SYMBOL_COUNT];

struct question {
    const char *name, *pmpi_name;
    uint32_t hash, pmpi_hash, init_hash;
    int has_mpi, has_function;
};

static int ask_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct question *question = context;
    struct table table;
    if (object->dlpi_addr == (ElfW(Addr))&__ehdr_start)
        return 0; /* ourselves */
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC ||
            !read_table((const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr), object->dlpi_addr, &table))
            continue;
        question->has_mpi |= find_symbol(&table, "PMPI_Init", question->init_hash) != NULL;
        question->has_function |= find_symbol(&table, question->pmpi_name, question->pmpi_hash) ||
                                  find_symbol(&table, question->name, question->hash);
    }
    return question->has_function;
}

/* Called by the loader while it binds a symbol: no dlsym, no dlopen, nothing that may take a lock of the loader's. */
void *lapscope_probe(unsigned symbol)
{
    const char *at = lapscope_symbols;
    for (unsigned i = 0; i < symbol; i++)
        at += strlen(at) + 1;
    char name[80] = "P";
    strncat(name, at, sizeof name - 2);
    struct question question = {name + 1, name, hash_of(name + 1), hash_of(name), hash_of("PMPI_Init"), 0, 0};
    dl_iterate_phdr(ask_object, &question);
    return question.has_function || !question.has_mpi ? entries[symbol] : NULL;
}

/* --- our own symbol table ----------------------------------------------------------------------------------------- */

static int is_c_symbol(const char *name)
{
    return !strncmp(name, "MPI_", 4) && name[4] && name[5] >= 'a';
}

/* Makes the segment writable in which our symbols lie; or what it was. Returns 0 when that cannot be. */
static int protect(const char *base, const void *symbols, int writable)
{
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++, segment++) {
        size_t at = (size_t)((const char *)symbols - base) - segment->p_vaddr;
        if (segment->p_type != PT_LOAD || at >= segment->p_memsz)
            continue;
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)base + segment->p_vaddr) & -page;
        int was = (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_X ? PROT_EXEC : 0);
        size_t bytes = (uintptr_t)base + segment->p_vaddr + segment->p_memsz - begin;
        return mprotect((void *)begin, bytes, writable ? was | PROT_WRITE : was) == 0;
    }
    return 0;
}

__attribute__((constructor)) static void make_indirect(void)
{
    char *base = (char *)&__ehdr_start;
    struct table table;
    if (!read_table(_DYNAMIC, (ElfW(Addr))base, &table) || !protect(base, table.symbols, 1))
        return; /* this MPI looks as rich as we are, then */
    const char *name = lapscope_symbols;
    for (unsigned i = 0; i < SYMBOL_COUNT; i++, name += strlen(name) + 1) {
        ElfW(Sym) *symbol = is_c_symbol(name) ? find_symbol(&table, name, hash_of(name)) : NULL;
        if (!symbol)
            continue;
        entries[i] = base + symbol->st_value;
        symbol->st_value = (ElfW(Addr))(lapscope_probes + i * LAPSCOPE_PROBE_BYTES - base);
        symbol->st_info = (unsigned char)ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info), STT_GNU_IFUNC);
    }
    protect(base, table.symbols, 0);
}

#endif
