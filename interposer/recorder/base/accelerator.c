#define _GNU_SOURCE
#include "accelerator.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CUDA's driver interface: cuda.h. */
enum { CU_MEMORY_TYPE = 2, CU_IS_MANAGED = 8, CU_RANGE_START = 11, CU_RANGE_BYTES = 12, CU_MEMORYTYPE_HOST = 1 };
typedef int pointer_attribute(void *data, int attribute, unsigned long long address);
typedef int device_count(int *count);

/* HIP's: hip_runtime_api.h. What kinds of memory are called has changed in its version 6, so they are not looked at. */
struct hip_attributes {
    int type, device;
    void *device_address, *host_address;
    int is_managed;
    unsigned flags;
    uint64_t later[16];
};
typedef int pointer_attributes(struct hip_attributes *attributes, const void *address);

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, STUB_LIBRARY = 34, NO_DEVICE = 100 }; /* of both, but for the stub, which is CUDA's */

static struct {
    pthread_mutex_t lock;
    unsigned long long adds;   /* the loader's, when it was looked at last */
    const char *library;
    pointer_attribute *cuda;
    device_count *cuda_devices;
    pointer_attributes *hip;
    int is_other;              /* Level Zero: only its own contexts tell what an address is */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *function_in(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

static int begins(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Paths are copied, as nothing may be opened while the loader's list is walked. */
struct found {
    char cuda[4096], hip[4096];
    int is_other;
};

static int note_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct found *found = context;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    if (begins(name, "libcuda.so"))
        strncpy(found->cuda, info->dlpi_name, sizeof found->cuda - 1);
    else if (begins(name, "libamdhip64.so"))
        strncpy(found->hip, info->dlpi_name, sizeof found->hip - 1);
    else if (begins(name, "libze_loader.so"))
        found->is_other = 1;
    return 0;
}

static int note_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
    (void)size;
    *(unsigned long long *)adds = info->dlpi_adds;
    return 1;
}

static void look(void)
{
    static struct found found; /* the lock is held */
    found = (struct found){.cuda = ""};
    dl_iterate_phdr(note_library, &found);
    known.cuda = found.cuda[0] ? (pointer_attribute *)function_in(found.cuda, "cuPointerGetAttribute") : NULL;
    known.cuda_devices = found.cuda[0] ? (device_count *)function_in(found.cuda, "cuDeviceGetCount") : NULL;
    known.hip = found.hip[0] ? (pointer_attributes *)function_in(found.hip, "hipPointerGetAttributes") : NULL;
    known.is_other = found.is_other;
    const char *library = found.cuda[0] ? "libcuda" : found.hip[0] ? "libamdhip64" : found.is_other ? "libze_loader" : NULL;
    __atomic_store_n(&known.library, library, __ATOMIC_RELEASE);
}

/* `lock` returns 0 where it has got it. */
static const char *library_by(int (*lock)(pthread_mutex_t *mutex))
{
    unsigned long long adds = 0;
    dl_iterate_phdr(note_adds, &adds);
    if (__atomic_load_n(&known.adds, __ATOMIC_ACQUIRE) != adds && lock(&known.lock) == 0) {
        look();
        __atomic_store_n(&known.adds, adds, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&known.lock);
    }
    return __atomic_load_n(&known.library, __ATOMIC_ACQUIRE);
}

const char *accelerator_library(void)
{
    return library_by(pthread_mutex_lock);
}

const char *accelerator_seen(void)
{
    return library_by(pthread_mutex_trylock);
}

/* A driver that knows nothing of an address says so of a page at a time. */
static struct accelerator_memory page_of(enum spool_data_memory kind, const void *address)
{
    const uintptr_t page = 4096, begin = (uintptr_t)address & ~(page - 1);
    return (struct accelerator_memory){kind, begin, begin + page};
}

/* Of a driver that nobody has initialised, or could: it has no device, or is the one that programs are linked with where there is none. */
static int is_unused(int error)
{
    return error == NOT_INITIALIZED || error == NO_DEVICE || error == STUB_LIBRARY;
}

/* Memory of the host that a driver does not know is an invalid value to it; any other error leaves it open. */
static enum spool_data_memory kind_of_error(int error)
{
    return error == INVALID_VALUE || is_unused(error) ? SPOOL_MEMORY_HOST : SPOOL_MEMORY_UNKNOWN;
}

static struct accelerator_memory ask_cuda(const void *address)
{
    int type = CU_MEMORYTYPE_HOST, is_managed = 0;
    unsigned long long at = (unsigned long long)(uintptr_t)address, begin = 0;
    size_t bytes = 0;
    int error = known.cuda(&type, CU_MEMORY_TYPE, at);
    if (error)
        return page_of(kind_of_error(error), address);
    enum spool_data_memory kind = known.cuda(&is_managed, CU_IS_MANAGED, at) == 0 && is_managed ? SPOOL_MEMORY_MANAGED
                             : type == CU_MEMORYTYPE_HOST                                  ? SPOOL_MEMORY_HOST
                                                                                           : SPOOL_MEMORY_DEVICE;
    int has_range = known.cuda(&begin, CU_RANGE_START, at) == 0 && known.cuda(&bytes, CU_RANGE_BYTES, at) == 0 && at - begin < bytes;
    return has_range ? (struct accelerator_memory){kind, (uintptr_t)begin, (uintptr_t)begin + bytes} : page_of(kind, address);
}

/* Threads have the name of their program, which may be cuda_jacobi or cuda7, as far as a thread's has room. */
static int is_of_program(const char *name)
{
    enum { MOST = 15 };
    return getpid() == (pid_t)syscall(SYS_gettid) || strncmp(name, program_invocation_short_name, MOST) == 0;
}

/* As CUDA's driver names its threads: "cuda-EvtHandlr", "cuda00001400006". */
static int is_of_cuda(const char *name)
{
    const char *digits = name + strlen("cuda");
    int has_such_name = strcmp(name, "cuda-EvtHandlr") == 0 || (begins(name, "cuda") && *digits && digits[strspn(digits, "0123456789")] == '\0');
    return has_such_name && !is_of_program(name);
}

/* On a thread of the driver's own, as where cudaLaunchHostFunc calls the program back, CUDA forbids every call of it. */
static int may_ask_cuda(void)
{
    static __thread int is_known, may;
    char name[16] = "";
    if (!is_known) {
        prctl(PR_GET_NAME, name);
        may = !is_of_cuda(name);
        is_known = 1;
    }
    return may;
}

/* It initialises nothing. HIP and Level Zero have no such question. */
int accelerator_may_be_used(void)
{
    int count = 0;
    if (!accelerator_library())
        return 0;
    if (!known.cuda_devices || known.hip || known.is_other || !may_ask_cuda())
        return 1;
    int error = known.cuda_devices(&count);
    return error ? !is_unused(error) : count != 0;
}

static struct accelerator_memory ask_hip(const void *address)
{
    struct hip_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    int error = known.hip(&attributes, address);
    if (error)
        return page_of(kind_of_error(error), address);
    int is_device = attributes.device_address && !attributes.host_address; /* neither: memory that HIP does not know, from version 6 on */
    enum spool_data_memory kind = attributes.is_managed ? SPOOL_MEMORY_MANAGED : is_device ? SPOOL_MEMORY_DEVICE : SPOOL_MEMORY_HOST;
    return page_of(kind, address);
}

static struct accelerator_memory by_cuda(const void *address)
{
    return known.cuda && may_ask_cuda() ? ask_cuda(address) : page_of(SPOOL_MEMORY_UNKNOWN, address);
}

struct accelerator_memory accelerator_memory_quietly(const void *address)
{
    struct accelerator_memory memory = by_cuda(address);
    if ((known.hip || known.is_other) && memory.kind == SPOOL_MEMORY_HOST)
        memory.kind = SPOOL_MEMORY_UNKNOWN;
    return memory;
}

struct accelerator_memory accelerator_memory_at(const void *address)
{
    accelerator_library(); /* which looks for those that came */
    struct accelerator_memory memory = by_cuda(address);
    if (known.hip && (!known.cuda || memory.kind == SPOOL_MEMORY_HOST))
        memory = ask_hip(address);
    if (known.is_other && memory.kind == SPOOL_MEMORY_HOST)
        memory.kind = SPOOL_MEMORY_UNKNOWN;
    return memory;
}

int accelerator_holds(const void *begin, uint64_t bytes)
{
    enum { PROBES = 64 }; /* drivers map memory in pieces of 2 MiB */
    uintptr_t at = (uintptr_t)begin, last = at + (bytes ? bytes - 1 : 0);
    if (!accelerator_library())
        return 0;
    for (;;) {
        struct accelerator_memory memory = accelerator_memory_at((const void *)at);
        if (memory.kind != SPOOL_MEMORY_HOST)
            return 1;
        if (at == last || memory.end > last)
            return 0;
        uintptr_t next = at + bytes / PROBES + 1;
        next = next > memory.end ? next : memory.end;
        at = next < last ? next : last;
    }
}
