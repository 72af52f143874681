/*
 * Programs ask whether an MPI has a function, by weak symbols or dlsym: mpi4py's wheels, built for every MPI, take
 * three hundred functions this way. We export all functions that any MPI has, and must not make this MPI look richer
 * than it is.
 *
 * So once the process has started, our C symbols become indirect ones (STT_GNU_IFUNC) in the copy of our symbol table
 * in memory: whoever binds to one from then on, calls probe() first, which answers NULL for what this MPI has not got.
 * Not in the file: libraries that are relocated before us would have glibc print a warning for each.
 */
#define _GNU_SOURCE
#include "elf_table.h"
#include "symbols.h"

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *lapscope_entries[SYMBOL_COUNT];

#ifndef __GLIBC__ /* no indirect symbols: nobody asks */
void *lapscope_probe(unsigned symbol)
{
    (void)symbol;
    return NULL;
}
#else

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* --- the answer --------------------------------------------------------------------------------------------------- */

struct question {
    const char *name, *pmpi_name;
    uint32_t hash, pmpi_hash, init_hash;
    int has_mpi, has_function;
};

static int ask_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct question *question = context;
    if (is_own_object(object))
        return 0;
    question->has_mpi |= defined_in_object(object, "PMPI_Init", question->init_hash) != NULL;
    question->has_function |= defined_in_object(object, question->pmpi_name, question->pmpi_hash) ||
                              defined_in_object(object, question->name, question->hash);
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
    return question.has_function || !question.has_mpi ? lapscope_entries[symbol] : NULL;
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
        lapscope_entries[i] = base + symbol->st_value;
        symbol->st_value = (ElfW(Addr))(lapscope_probes + i * LAPSCOPE_PROBE_BYTES - base);
        symbol->st_info = (unsigned char)ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info), STT_GNU_IFUNC);
    }
    protect(base, table.symbols, 0);
}

#endif
