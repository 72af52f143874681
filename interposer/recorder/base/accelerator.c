#define _GNU_SOURCE
#include "accelerator.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

/* CUDA's driver interface: cuda.h. */
enum { CU_MEMORY_TYPE = 2, CU_IS_MANAGED = 8, CU_MEMORYTYPE_HOST = 1, CU_INVALID_VALUE = 1, CU_NOT_INITIALIZED = 3 };
typedef int pointer_attribute(void *data, int attribute, unsigned long long address);

/* HIP's: hip_runtime_api.h. What kinds of memory are called has changed in its version 6, so they are not looked at. */
struct hip_attributes {
    int type, device;
    void *device_address, *host_address;
    int is_managed;
    unsigned flags;
    uint64_t later[16];
};
enum { HIP_INVALID_VALUE = 1, HIP_NOT_INITIALIZED = 3 };
typedef int pointer_attributes(struct hip_attributes *attributes, const void *address);

static struct {
    pthread_mutex_t lock;
    unsigned long long adds;   /* the loader's, when it was looked at last */
    const char *library;
    pointer_attribute *cuda;
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
    known.hip = found.hip[0] ? (pointer_attributes *)function_in(found.hip, "hipPointerGetAttributes") : NULL;
    known.is_other = found.is_other;
    const char *library = found.cuda[0] ? "libcuda" : found.hip[0] ? "libamdhip64" : found.is_other ? "libze_loader" : NULL;
    __atomic_store_n(&known.library, library, __ATOMIC_RELEASE);
}

const char *accelerator_library(void)
{
    unsigned long long adds = 0;
    dl_iterate_phdr(note_adds, &adds);
    if (__atomic_load_n(&known.adds, __ATOMIC_ACQUIRE) != adds) {
        pthread_mutex_lock(&known.lock);
        look();
        __atomic_store_n(&known.adds, adds, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&known.lock);
    }
    return __atomic_load_n(&known.library, __ATOMIC_ACQUIRE);
}

/* Memory of the host that CUDA does not know is an invalid value to it; any other error leaves it open. */
static int is_of_cuda(const void *address)
{
    int type = CU_MEMORYTYPE_HOST, is_managed = 0;
    unsigned long long number = (unsigned long long)(uintptr_t)address;
    int error = known.cuda(&type, CU_MEMORY_TYPE, number);
    if (error)
        return error != CU_INVALID_VALUE && error != CU_NOT_INITIALIZED;
    return type != CU_MEMORYTYPE_HOST || (known.cuda(&is_managed, CU_IS_MANAGED, number) == 0 && is_managed);
}

static int is_of_hip(const void *address)
{
    struct hip_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    int error = known.hip(&attributes, address);
    if (error)
        return error != HIP_INVALID_VALUE && error != HIP_NOT_INITIALIZED;
    return !attributes.host_address || attributes.is_managed;
}

int accelerator_holds(const void *address)
{
    if (!accelerator_library())
        return 0;
    return known.is_other || (known.cuda && is_of_cuda(address)) || (known.hip && is_of_hip(address));
}
