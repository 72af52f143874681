/*
 * Programs ask whether an MPI has a function, by weak symbols or dlsym: mpi4py's wheels, built for every MPI, take
 * three hundred functions this way. We export all functions that any MPI has, and must not make this MPI look richer
 * than it is.
 *
 * So before the process first loads anything by dlopen() or dlmopen(), or asks dlsym() for a function of MPI, our C symbols become indirect ones
 * (STT_GNU_IFUNC) in the copy of our symbol table in memory: whoever binds to one from then on, calls probe() first, which answers NULL
 * for what this MPI has not got. Not in the file: libraries that are relocated before us would have glibc print a warning for each.
 * Nor at the start, as every process that inherits LD_PRELOAD would pay for its own copy of thirty pages.
 */
#define _GNU_SOURCE
#include "elf_table.h"
#include "next_dlsym.h"
#include "symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef __GLIBC__ /* no indirect symbols: nobody asks */
void *lapscope_entry(unsigned symbol, const char *name)
{
    (void)symbol, (void)name;
    return NULL;
}

void lapscope_make_indirect(void)
{
}

void *lapscope_probe(unsigned symbol)
{
    (void)symbol;
    return NULL;
}
#else

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static int is_c_symbol(const char *name)
{
    return !strncmp(name, "MPI_", 4) && name[4] && name[5] >= 'a';
}

void *lapscope_entry(unsigned symbol, const char *name)
{
    return is_c_symbol(name) ? lapscope_entries + (size_t)symbol * LAPSCOPE_ENTRY_BYTES : NULL;
}

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
    return question.has_function || !question.has_mpi ? lapscope_entry(symbol, question.name) : NULL;
}

/* --- our own symbol table ----------------------------------------------------------------------------------------- */

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

/* In the order of the table, and by numbers alone. */
static void make_indirect(void)
{
    char *base = (char *)&__ehdr_start;
    struct table table;
    if (!read_table(_DYNAMIC, (ElfW(Addr))base, &table) || !protect(base, table.symbols, 1))
        return; /* this MPI looks as rich as we are, then */
    for (uint32_t i = table.gnu_hash[1], end = symbol_count(&table); i < end; i++) {
        ElfW(Sym) *symbol = &table.symbols[i];
        size_t at = (size_t)(base + symbol->st_value - lapscope_entries);
        if (at >= (size_t)SYMBOL_COUNT * LAPSCOPE_ENTRY_BYTES || !is_c_symbol(table.names + symbol->st_name))
            continue;
        symbol->st_value = (ElfW(Addr))(lapscope_probes + at / LAPSCOPE_ENTRY_BYTES * LAPSCOPE_PROBE_BYTES - base);
        symbol->st_info = (unsigned char)ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info), STT_GNU_IFUNC);
    }
    protect(base, table.symbols, 0);
}

void lapscope_make_indirect(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_indirect);
}

/* Where MPI is there from the start, before there are threads that might bind to a symbol meanwhile. */
__attribute__((constructor)) static void make_indirect_early(void)
{
    if (next_dlsym()(RTLD_NEXT, "PMPI_Init"))
        lapscope_make_indirect();
}

#endif

/* --- dlopen() and dlmopen() ---------------------------------------------------------------------------------------- */

static void *open_nothing(void)
{
    return NULL;
}

static void *before_opening(void **next, const char *name)
{
    int saved_errno = errno;
    void *found = __atomic_load_n(next, __ATOMIC_RELAXED);
    if (!found) {
        lapscope_make_indirect();
        found = next_dlsym()(RTLD_NEXT, name);
        __atomic_store_n(next, found, __ATOMIC_RELAXED);
    }
    errno = saved_errno;
    return found ? found : (void *)open_nothing;
}

/* Called by ours of these names; return where to jump. */
void *lapscope_before_dlopen(void) __attribute__((visibility("hidden")));
void *lapscope_before_dlmopen(void) __attribute__((visibility("hidden")));

void *lapscope_before_dlopen(void)
{
    static void *next;
    return before_opening(&next, "dlopen");
}

/* What goes into a name space of its own does not meet our symbols; with LM_ID_BASE it is dlopen. */
void *lapscope_before_dlmopen(void)
{
    static void *next;
    return before_opening(&next, "dlmopen");
}
