#define _GNU_SOURCE
#include "context.h"

#include <dlfcn.h>
#include <stddef.h>

/* As cuda.h has them; errors are other than 0. */
struct driver {
    int (*CtxGetCurrent)(void **context);
    int (*DeviceGetCount)(int *count);
    int (*DeviceGet)(int *device, int ordinal);
    int (*DevicePrimaryCtxGetState)(int device, unsigned *flags, int *is_active);
};

static int find_driver(struct driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    *(void **)&driver->CtxGetCurrent = dlsym(library, "cuCtxGetCurrent");
    *(void **)&driver->DeviceGetCount = dlsym(library, "cuDeviceGetCount");
    *(void **)&driver->DeviceGet = dlsym(library, "cuDeviceGet");
    *(void **)&driver->DevicePrimaryCtxGetState = dlsym(library, "cuDevicePrimaryCtxGetState");
    return driver->CtxGetCurrent && driver->DeviceGetCount && driver->DeviceGet && driver->DevicePrimaryCtxGetState;
}

int context_may_be_there(void)
{
    struct driver driver;
    void *current = NULL;
    int count = 0, device;
    if (!find_driver(&driver) || driver.CtxGetCurrent(&current) || current || driver.DeviceGetCount(&count))
        return 1;
    for (int i = 0; i < count; i++) {
        unsigned flags;
        int is_active = 1;
        if (driver.DeviceGet(&device, i) || driver.DevicePrimaryCtxGetState(device, &flags, &is_active) || is_active)
            return 1;
    }
    return 0;
}
