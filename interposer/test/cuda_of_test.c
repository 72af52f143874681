/* A stand-in for CUDA's driver, which knows one range of addresses, and counts how often it is asked of an address. */
#include "cuda_of_test.h"

#include <stddef.h>

struct cuda_of_test cuda_of_test;

int cuDeviceGetCount(int *count)
{
    *count = !cuda_of_test.has_no_device;
    return cuda_of_test.count_error;
}

int cuDeviceGet(int *device, int ordinal)
{
    return *device = ordinal, 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
    *flags = 0;
    *is_active = cuda_of_test.has_primary_context;
    return device != 0;
}

int cuCtxGetCurrent(void **context)
{
    __atomic_fetch_add(&cuda_of_test.looked, 1, __ATOMIC_SEQ_CST);
    return *context = cuda_of_test.has_current_context ? &cuda_of_test : NULL, 0;
}

int cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, RANGE_START = 11, RANGE_BYTES = 12, DEVICE = 2, INVALID_VALUE = 1 };
    cuda_of_test.asked += attribute == MEMORY_TYPE;
    if (address - cuda_of_test.begin >= cuda_of_test.bytes)
        return INVALID_VALUE;
    if (attribute == MEMORY_TYPE)
        *(int *)data = DEVICE;
    else if (attribute == IS_MANAGED)
        *(int *)data = cuda_of_test.is_managed;
    else if (attribute == RANGE_START)
        *(unsigned long long *)data = cuda_of_test.begin;
    else if (attribute == RANGE_BYTES)
        *(size_t *)data = cuda_of_test.bytes;
    else
        return INVALID_VALUE;
    return 0;
}
