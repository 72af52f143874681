/*
 * The first call through any trampoline: find the MPI of this process, load the recorder for its ABI, fill the slots.
 *
 * Whatever fails, the slots end up with MPI's own functions and the application runs as if alone.
 */
#define _GNU_SOURCE
#include "host.h"

#include "../recorder/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CALL(name, family, role) #name,
static const char *const call_names[] = {
#include "../calls.def"
};
#undef CALL

enum { CALL_COUNT = sizeof call_names / sizeof call_names[0], PATH_BYTES = 4096 };

extern void *lapscope_slots[CALL_COUNT] __attribute__((visibility("hidden")));
void *lapscope_resolve(unsigned call) __attribute__((visibility("hidden")));

static void *real[CALL_COUNT];
static char mpi_path[PATH_BYTES];
static char own_path[PATH_BYTES];
static void *mpi_handle;
static pthread_once_t resolve_once = PTHREAD_ONCE_INIT;

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

/* mpi4py, Julia and R load their MPI late and with local scope: the first object that reaches a PMPI_Init. */
static void *find_in_local_scopes(void)
{
    static struct loaded loaded;
    dl_iterate_phdr(note_loaded, &loaded);
    void *found = NULL;
    for (int i = 0; i < loaded.count; i++) {
        void *handle = found || !loaded.names[i] ? NULL : dlopen(loaded.names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            found = dlsym(handle, "PMPI_Init");
            dlclose(handle);
        }
        free(loaded.names[i]);
    }
    return found;
}

static int find_mpi(void)
{
    return adopt_mpi(dlsym(RTLD_DEFAULT, "PMPI_Init")) || adopt_mpi(find_in_local_scopes());
}

static void *lookup(const char *symbol)
{
    return dlsym(mpi_handle, symbol);
}

/* The next MPI_X behind us: another tool's wrapper where one is loaded, else the MPI's. */
static void *next_in_line(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);
    return next || !mpi_handle ? next : lookup(name);
}

/* --- telling its ABI ---------------------------------------------------------------------------------------------- */

static int starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "openmpi", "mpich", "mpiabi", or NULL with the library's own words in `version`. */
static const char *tell_abi(char *version, size_t version_bytes)
{
    enum { LIBRARY_VERSION_BYTES = 8192 + 1 }; /* MPI_MAX_LIBRARY_VERSION_STRING of every known MPI, and the MPI-5 ABI's */
    const char *file = strrchr(mpi_path, '/');
    if (lookup("ompi_mpi_comm_world"))
        return "openmpi";
    if (starts_with(file ? file + 1 : mpi_path, "libmpi_abi"))
        return "mpiabi";

    int (*get_version)(char *, int *) = (int (*)(char *, int *))lookup("PMPI_Get_library_version");
    static char text[LIBRARY_VERSION_BYTES];
    int length = 0;
    if (get_version)
        get_version(text, &length); /* allowed before MPI_Init */
    snprintf(version, version_bytes, "%.*s", (int)strcspn(text, "\n"), text);
    if (starts_with(text, "MPICH") || starts_with(text, "Intel(R) MPI") || starts_with(text, "MVAPICH") ||
        starts_with(text, "CRAY MPICH"))
        return "mpich";
    return NULL;
}

/* --- loading the recorder ----------------------------------------------------------------------------------------- */

static int is_off(const char *value)
{
    return value && (!strcasecmp(value, "off") || !strcmp(value, "0") || !strcasecmp(value, "no") ||
                     !strcasecmp(value, "false"));
}

static void load_recorder(void)
{
    char version[160] = "";
    const char *abi = tell_abi(version, sizeof version);
    if (!abi) {
        log_line("this MPI is not one lapscope knows (%s, \"%s\"): nothing is recorded, the program runs as if alone",
                 mpi_path, version);
        return;
    }
    char path[PATH_BYTES];
    const char *slash = strrchr(own_path, '/');
    int room = snprintf(path, sizeof path, "%.*sliblapscope-%s.so", slash ? (int)(slash + 1 - own_path) : 0, own_path, abi);
    void *recorder = room < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!recorder) {
        log_line("cannot load the recorder for this MPI: %s. Nothing is recorded, the program runs as if alone; "
                 "`lapscope doctor` says what is missing", room < (int)sizeof path ? dlerror() : "path too long");
        return;
    }
    static const struct lapscope_host host = {LAPSCOPE_HOST_VERSION, CALL_COUNT, lapscope_slots, real, lookup, mpi_path};
    lapscope_attach_fn *attach = (lapscope_attach_fn *)dlsym(recorder, LAPSCOPE_ATTACH_SYMBOL);
    if (!attach || attach(&host) != 0)
        log_line("the recorder %s is of another version than liblapscope.so: nothing is recorded; install both anew", path);
}

static void resolve_all(void)
{
    Dl_info info;
    if (dladdr((void *)lapscope_slots, &info) && info.dli_fname && strlen(info.dli_fname) < PATH_BYTES)
        strcpy(own_path, info.dli_fname);
    int found = find_mpi();
    for (unsigned i = 0; i < CALL_COUNT; i++)
        real[i] = next_in_line(call_names[i]);

    for (unsigned i = 0; i < CALL_COUNT; i++) /* those that this MPI has not keep their first-call stubs */
        if (real[i])
            lapscope_slots[i] = real[i];
    if (found && !is_off(getenv("LAPSCOPE_ENABLE")))
        load_recorder();
}

/* Called by the trampolines; returns where to jump. */
void *lapscope_resolve(unsigned call)
{
    int saved_errno = errno;
    pthread_once(&resolve_once, resolve_all);
    if (!real[call]) {
        log_line("symbol lookup error: the MPI of this process (%s) has no %s", *mpi_path ? mpi_path : "none found",
                 call_names[call]);
        _exit(127); /* what the loader does without us */
    }
    errno = saved_errno;
    return lapscope_slots[call];
}
