/*
 * The first call through any trampoline: find the MPI of this process and load the recorder for its ABI. The first call
 * of each function: find it, and fill its slot.
 *
 * Whatever fails, the slots end up with MPI's own functions and the application runs as if alone.
 */
#define _GNU_SOURCE
#include "abi.h"
#include "devices.h"
#include "host.h"
#include "next_dlsym.h"
#include "resolve.h"
#include "symbols.h"

#include "../recorder/base/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

enum function {
#define FUNCTION(function) FUNCTION_##function,
#define SYMBOL(name, function)
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL
    FUNCTION_COUNT
};

const char lapscope_symbols[] =
#define FUNCTION(function)
#define SYMBOL(name, function) #name "\0"
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL
    "";

static const unsigned short function_of[] = {
#define FUNCTION(function)
#define SYMBOL(name, function) FUNCTION_##function,
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL
};

enum { PATH_BYTES = 4096 };

void *lapscope_slots[SYMBOL_COUNT] __attribute__((visibility("hidden"))); /* where each symbol's entry leads; NULL: not called yet */
void *lapscope_resolve(unsigned symbol) __attribute__((visibility("hidden")));

static void *real[FUNCTION_COUNT], *in_line[FUNCTION_COUNT], *substitutes[FUNCTION_COUNT]; /* host.h */
static void *const *wrappers; /* the recorder's; NULL when nothing is recorded */
/* What programs were told of by a handle (by_handle.c): the MPI's functions that our trampolines stand for; the first of all. */
static void *told[SYMBOL_COUNT], *first_told;
static char mpi_path[PATH_BYTES];
static char own_path[PATH_BYTES];
static char began_in[PATH_BYTES];
static void *mpi_handle;
static pthread_once_t resolve_once = PTHREAD_ONCE_INIT;

/* Programs go elsewhere, to a scratch directory of their own perhaps, before they call MPI_Init. The kernel is asked: a
 * function of that name may be the program's. */
__attribute__((constructor)) static void note_directory(void)
{
    int saved_errno = errno;
    if (syscall(SYS_getcwd, began_in, sizeof began_in) <= 0 || *began_in != '/')
        *began_in = '\0';
    errno = saved_errno;
}

/* --- finding the MPI ---------------------------------------------------------------------------------------------- */

/* Takes the object that defines `address` as the MPI of this process. */
static int adopt_mpi(void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname || strlen(info.dli_fname) >= PATH_BYTES)
        return 0;
    strcpy(mpi_path, info.dli_fname);
    mpi_handle = dlopen(mpi_path, RTLD_LAZY | RTLD_NOLOAD);
    if (!mpi_handle)
        mpi_handle = dlopen(NULL, RTLD_LAZY); /* linked into the executable itself */
    return mpi_handle != NULL;
}

struct loaded {
    char *names[1024];
    int count;
};

/* dl_iterate_phdr callback. Only notes names: dlopen from here could deadlock with a dlopen of another thread. */
static int note_loaded(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct loaded *loaded = context;
    if (object->dlpi_name && *object->dlpi_name && loaded->count < 1024)
        loaded->names[loaded->count++] = strdup(object->dlpi_name);
    return 0;
}

/* mpi4py, Julia and R load their MPI late and with local scope: the first object that reaches a symbol. */
static void *find_in_local_scopes(const char *symbol)
{
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return NULL;
    dl_iterate_phdr(note_loaded, loaded);
    void *found = NULL;
    for (int i = 0; i < loaded->count; i++) {
        void *handle = found || !loaded->names[i] || !strcmp(loaded->names[i], own_path)
                           ? NULL
                           : dlopen(loaded->names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            found = next_dlsym()(handle, symbol);
            Dl_info info;
            if (found && dladdr(found, &info) && info.dli_fname && !strcmp(info.dli_fname, own_path))
                found = NULL; /* the search went through us: this object only asks for it */
            dlclose(handle);
        }
        free(loaded->names[i]);
    }
    free(loaded);
    return found;
}

static int find_mpi(void)
{
    return adopt_mpi(next_dlsym()(RTLD_DEFAULT, "PMPI_Init")) || adopt_mpi(__atomic_load_n(&first_told, __ATOMIC_ACQUIRE)) ||
           adopt_mpi(find_in_local_scopes("PMPI_Init"));
}

static void *lookup(const char *symbol)
{
    return next_dlsym()(mpi_handle, symbol);
}

/* The next of that name behind us: another tool's wrapper where one is loaded, else the MPI's. Fortran bindings are in
 * a library of their own, which the MPI does not know. */
static void *next_in_line(const char *name)
{
    void *next = next_dlsym()(RTLD_NEXT, name);
    if (!next && mpi_handle)
        next = lookup(name);
    return next ? next : find_in_local_scopes(name);
}

static const char *name_of(unsigned symbol)
{
    const char *at = lapscope_symbols;
    for (; symbol > 0; symbol--)
        at += strlen(at) + 1;
    return at;
}

static int starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether what was found under a name is MPI's function, or another tool's for it. C names and those that end as
 * Fortran compilers write them are; the bare and the upper-case mangling might be anybody's, but only MPI's has the
 * PMPI form beside it. Intel's library for eight-byte integers takes other arguments than the wrappers know. */
static int is_mpi_function(const char *name, void *found)
{
    char profiled[128];
    Dl_info info, other;
    if (!dladdr(found, &info) || !info.dli_fname || strstr(info.dli_fname, "ilp64"))
        return 0;
    size_t length = strlen(name);
    int upper = name[4] >= 'A' && name[4] <= 'Z' && name[length - 1] >= 'A' && name[length - 1] <= 'Z';
    if ((starts_with(name, "MPI_") && !upper) || name[length - 1] == '_')
        return 1;
    snprintf(profiled, sizeof profiled, "%c%s", upper ? 'P' : 'p', name);
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *beside = handle ? next_dlsym()(handle, profiled) : NULL;
    if (handle)
        dlclose(handle);
    return beside && dladdr(beside, &other) && other.dli_fbase == info.dli_fbase;
}

/* --- loading the recorder ----------------------------------------------------------------------------------------- */

static int is_off(const char *value)
{
    return value && (!strcasecmp(value, "off") || !strcmp(value, "0") || !strcasecmp(value, "no") ||
                     !strcasecmp(value, "false"));
}

/* A program may have functions of its own that are called as some of the C library's, link() or memmem(): the recorder
 * is bound to the C library first. Runtimes of sanitizers end a program that asks for that. */
static int recorder_scope(void)
{
    int is_sanitized = next_dlsym()(RTLD_DEFAULT, "__sanitizer_set_report_path") != NULL;
    return is_sanitized ? RTLD_LOCAL : RTLD_LOCAL | RTLD_DEEPBIND;
}

static void load_recorder(void)
{
    char version[160] = "";
    const char *abi = abi_of(mpi_handle, mpi_path, version, sizeof version);
    if (!abi) {
        log_line("this MPI is not one lapscope knows (%s, \"%s\"): nothing is recorded, the program runs as if alone",
                 mpi_path, version);
        return;
    }
    char path[PATH_BYTES];
    const char *slash = strrchr(own_path, '/');
    int room = snprintf(path, sizeof path, "%.*sliblapscope-%s.so", slash ? (int)(slash + 1 - own_path) : 0, own_path, abi);
    void *recorder = room < (int)sizeof path ? dlopen(path, RTLD_NOW | recorder_scope()) : NULL;
    if (!recorder) {
        log_line("cannot load the recorder for this MPI: %s. Nothing is recorded, the program runs as if alone; "
                 "`lapscope doctor` says what is missing", room < (int)sizeof path ? dlerror() : "path too long");
        return;
    }
    static const struct lapscope_host host = {LAPSCOPE_HOST_VERSION, FUNCTION_COUNT, real, in_line, substitutes, lookup, mpi_path,
                                             began_in, &lapscope_exit_hook, &lapscope_mask_hook, &lapscope_devices};
    lapscope_attach_fn *attach = (lapscope_attach_fn *)dlsym(recorder, LAPSCOPE_ATTACH_SYMBOL);
    wrappers = attach ? attach(&host) : NULL;
    if (!attach)
        log_line("%s is no recorder: nothing is recorded; install lapscope anew", path);
}

static void find_and_load(void)
{
    Dl_info info;
    if (dladdr((void *)lapscope_slots, &info) && info.dli_fname && strlen(info.dli_fname) < PATH_BYTES)
        strcpy(own_path, info.dli_fname);
    if (find_mpi() && !is_off(getenv("LAPSCOPE_ENABLE")))
        load_recorder();
}

int resolve_tells(unsigned symbol, void *found)
{
    const void *served = __atomic_load_n(&in_line[function_of[symbol]], __ATOMIC_ACQUIRE);
    void *none = NULL;
    if ((served && served != found) || is_off(getenv("LAPSCOPE_ENABLE")))
        return 0;
    __atomic_compare_exchange_n(&first_told, &none, found, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    none = NULL;
    __atomic_compare_exchange_n(&told[symbol], &none, found, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return !none || none == found; /* or another MPI was told of before */
}

/* Called by the trampolines; returns where to jump. */
void *lapscope_resolve(unsigned symbol)
{
    int saved_errno = errno;
    pthread_once(&resolve_once, find_and_load);
    const char *name = name_of(symbol);
    void *found = __atomic_load_n(&told[symbol], __ATOMIC_ACQUIRE), *none = NULL; /* or what another thread found before */
    if (!found)
        found = next_in_line(name);
    if (!found) {
        log_line("symbol lookup error: the MPI of this process (%s) has no %s", *mpi_path ? mpi_path : "none found", name);
        _exit(127); /* what the loader does without us */
    }
    void *entry = found;
    unsigned function = function_of[symbol];
    if (wrappers && wrappers[function] && is_mpi_function(name, found)) {
        /* all manglings of a function are one function: the first that is called serves the wrapper */
        if (__atomic_compare_exchange_n(&in_line[function], &none, found, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            none = found;
        __atomic_store_n(&real[function], substitutes[function] ? substitutes[function] : none, __ATOMIC_RELEASE);
        entry = wrappers[function];
    }
    __atomic_store_n(&lapscope_slots[symbol], entry, __ATOMIC_RELEASE);
    errno = saved_errno;
    return entry;
}
