/*
 * Programs that open their MPI and ask for its functions one by one, dlsym(handle, "MPI_Isend"), never meet our
 * symbols: Julia, Python's ctypes, bindings that choose among several MPIs. So we answer such questions too: dlsym is
 * ours, and every one that is not for a function of MPI by a handle goes on to the next dlsym by a jump, so that it
 * sees the caller it would have seen (RTLD_NEXT goes by that). Trampoline.S has the entry.
 */
#define _GNU_SOURCE
#include "devices.h"
#include "elf_table.h"
#include "next_dlsym.h"
#include "resolve.h"
#include "symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of symbols by their names, and where in lapscope_symbols each symbol's name begins. */
static const uint16_t sorted[SYMBOL_COUNT] = {
#include "sorted.inc"
};
static uint32_t begins[SYMBOL_COUNT];

static void find_begins(void)
{
    const char *at = lapscope_symbols;
    for (int i = 0; i < SYMBOL_COUNT; i++, at += strlen(at) + 1)
        begins[i] = (uint32_t)(at - lapscope_symbols);
}

static int by_name(const void *name, const void *number)
{
    return strcmp(name, lapscope_symbols + begins[*(const uint16_t *)number]);
}

static int number_of(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_begins);
    const uint16_t *found = bsearch(name, sorted, SYMBOL_COUNT, sizeof sorted[0], by_name);
    return found ? *found : -1;
}

struct asker {
    ElfW(Addr) address;
    const char *name;
    int is_mpi; /* it defines that function itself */
};

static int look_at_asker(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct asker *asker = context;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || asker->address - object->dlpi_addr - segment->p_vaddr >= segment->p_memsz)
            continue;
        asker->is_mpi = defined_in_object(object, asker->name, hash_of(asker->name)) != NULL;
        return 1;
    }
    return 0;
}

/* An MPI made of two layers, or another tool, looks for what stands behind its own function of that name: it must get
 * that. */
static int is_asked_by_mpi(const void *caller, const char *name)
{
    struct asker asker = {(ElfW(Addr))caller, name, 0};
    dl_iterate_phdr(look_at_asker, &asker);
    return asker.is_mpi;
}

/* Whether what it leads to was opened by dlmopen() into a name space of its own: a second MPI, perhaps, with a libc of its own, which
 * our recorder can not call. */
static int is_of_other_namespace(void *handle)
{
    Lmid_t space = LM_ID_BASE;
    return dlinfo(handle, RTLD_DI_LMID, &space) == 0 && space != LM_ID_BASE;
}

/* Our entry for a function that `handle` leads to, if it leads on to just that one: not where another tool stands
 * between us and it, or where another MPI was told of before. */
static void *entry_for(void *handle, const char *name, const void *caller)
{
    dlsym_fn *next = next_dlsym();
    char profiled[80];
    int symbol = number_of(name);
    void *entry = symbol < 0 ? NULL : lapscope_entry((unsigned)symbol, name);
    if (!entry || is_of_other_namespace(handle) || strlen(name) >= sizeof profiled - 1)
        return NULL;
    snprintf(profiled, sizeof profiled, "P%s", name);
    void *found = next(handle, profiled) ? lapscope_next_dlsym(handle, name) : NULL;
    if (!found || found == entry || is_asked_by_mpi(caller, name))
        return NULL;
    void *in_line = next(RTLD_NEXT, name);
    return (!in_line || in_line == found) && resolve_tells((unsigned)symbol, found) ? entry : NULL;
}

static int look_for_definition(struct dl_phdr_info *object, size_t size, void *name)
{
    (void)size;
    return !is_own_object(object) && defined_in_object(object, name, hash_of(name)) != NULL;
}

/* Whether the question is for a function of Fortran's that is nowhere but here: a program looks which manglings its MPI has.
 * What C's functions answer, the loader asks lapscope_probe. */
static int is_ours_alone(void *handle, const char *name)
{
    int symbol = handle == RTLD_DEFAULT ? number_of(name) : -1;
    return symbol >= 0 && !lapscope_entry((unsigned)symbol, name) && !next_dlsym()(RTLD_NEXT, name) &&
           !dl_iterate_phdr(look_for_definition, (void *)name);
}

/* Runtimes of sanitizers ask for functions before their own may be called, such as for strings. */
static int may_be_fortran(const char *name)
{
    return (name[0] | 32) == 'm' && (name[1] | 32) == 'p' && (name[2] | 32) == 'i' && name[3] == '_';
}

/* What the entry answers NULL for (trampoline.S). */
#define LAPSCOPE_NOWHERE ((void *)-1)

/* Whether an object, or what it needs, defines that name. */
static int is_in_reach(const char *object, const char *name)
{
    void *handle = dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
    int is_defined = handle && next_dlsym()(handle, name);
    if (handle)
        dlclose(handle);
    return is_defined;
}

/* Whether whoever asks finds it. RTLD_NEXT goes by who asks, and we can ask from our own place alone: what stands behind that, or what a
 * library that was opened later has brought, is no less than what is found. */
static int is_found(void *handle, const char *name, const void *caller)
{
    Dl_info asker;
    if (next_dlsym()(handle, name))
        return 1;
    return handle == RTLD_NEXT && dladdr(caller, &asker) && is_in_reach(asker.dli_fname, name);
}

/* Those who need to know who uses a vendor's library are told (devices.h). */
static void tell_who_asks(void *handle, const char *name, const void *caller)
{
    void (*asked)(const char *) = __atomic_load_n(&lapscope_devices.asked, __ATOMIC_ACQUIRE);
    if (!asked || strncmp(name, "cupti", strlen("cupti")) != 0)
        return;
    if (is_found(handle, name, caller))
        asked(name);
    dlerror(); /* of our own questions nothing is left */
}

/* Called by our dlsym with what it was called with, and by whom. NULL: the next dlsym answers. */
void *lapscope_by_handle(void *handle, const char *name, const void *caller) __attribute__((visibility("hidden")));

void *lapscope_by_handle(void *handle, const char *name, const void *caller)
{
    int saved_errno = errno;
    void *entry = NULL;
    next_dlsym(); /* what the entry jumps to: runtimes of sanitizers ask before constructors run */
    if (name)
        tell_who_asks(handle, name, caller);
    if (name && !strncmp(name, "MPI_", 4))
        lapscope_make_indirect();
    if (name && may_be_fortran(name) && is_ours_alone(handle, name)) { /* what dlerror() says of it stays */
        entry = LAPSCOPE_NOWHERE;
    } else if (handle != RTLD_DEFAULT && handle != RTLD_NEXT && name && !strncmp(name, "MPI_", 4)) {
        entry = entry_for(handle, name, caller);
        dlerror(); /* of our own questions nothing is left */
    }
    errno = saved_errno;
    return entry;
}
