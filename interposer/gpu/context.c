#define _GNU_SOURCE
#include "context.h"

#include <dlfcn.h>
#include <stddef.h>

/* As cuda.h has them; errors are other than 0. */
static struct {
    int (*CtxGetCurrent)(void **context);
    int (*DeviceGetCount)(int *count);
    int (*DeviceGet)(int *device, int ordinal);
    int (*DevicePrimaryCtxGetState)(int device, unsigned *flags, int *is_active);
} driver;
static int has_driver, was_there;

void context_begin(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return;
    *(void **)&driver.CtxGetCurrent = dlsym(library, "cuCtxGetCurrent");
    *(void **)&driver.DeviceGetCount = dlsym(library, "cuDeviceGetCount");
    *(void **)&driver.DeviceGet = dlsym(library, "cuDeviceGet");
    *(void **)&driver.DevicePrimaryCtxGetState = dlsym(library, "cuDevicePrimaryCtxGetState");
    has_driver = driver.CtxGetCurrent && driver.DeviceGetCount && driver.DeviceGet && driver.DevicePrimaryCtxGetState;
}

enum contexts { NO_CONTEXT, SOME_CONTEXT, NOT_KNOWN };

static enum contexts contexts_now(void)
{
    void *current = NULL;
    int count = 0, device;
    if (!has_driver || driver.CtxGetCurrent(&current) || driver.DeviceGetCount(&count))
        return NOT_KNOWN;
    int is_active = current != NULL;
    for (int i = 0; i < count && !is_active; i++) {
        unsigned flags;
        if (driver.DeviceGet(&device, i) || driver.DevicePrimaryCtxGetState(device, &flags, &is_active))
            return NOT_KNOWN;
    }
    return is_active ? SOME_CONTEXT : NO_CONTEXT;
}

/* A driver that does not say, as while it starts, has shown none. */
void context_look(void)
{
    if (contexts_now() == SOME_CONTEXT)
        __atomic_store_n(&was_there, 1, __ATOMIC_RELAXED);
}

int context_may_have_been(void)
{
    return __atomic_load_n(&was_there, __ATOMIC_RELAXED) || contexts_now() != NO_CONTEXT;
}
