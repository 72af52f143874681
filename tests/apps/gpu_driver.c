/*
 * A stand-in for drivers of accelerators, whose file has the name of the one that it is taken for. Its memory is there, and nobody
 * but the driver may touch it. It has one lock, which a call holds that waits for the device, and every question takes. The MPI that
 * knows such memory is gpu_mpi.c. Functions of the vendors have the names and arguments of cuda.h and hip_runtime_api.h.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, HOST = 1, DEVICE = 2, MEMORY_TYPE = 2, IS_MANAGED = 8, RANGE_START = 11, RANGE_BYTES = 12 };
enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3 };

static struct allocation { uintptr_t begin, end; int is_managed; } allocations[MOST];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* GPU_DRIVER_CAME: a file that says so. */
__attribute__((constructor)) static void came(void)
{
    const char *file = getenv("GPU_DRIVER_CAME");
    if (file)
        close(open(file, O_CREAT | O_WRONLY, 0600));
}

int gpu_allocate(void **address, size_t bytes, int is_managed)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || count == MOST)
        return 2;
    allocations[count++] = (struct allocation){(uintptr_t)memory, (uintptr_t)memory + bytes, is_managed};
    *address = memory;
    return 0;
}

static struct allocation *allocation_of(uintptr_t address)
{
    struct allocation *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (allocations[i].begin <= address && address < allocations[i].end)
            found = &allocations[i];
    pthread_mutex_unlock(&lock);
    return found;
}

/* GPU_DRIVER_IS_IDLE: nobody has called cuInit. */
int cuDeviceGetCount(int *devices)
{
    return *devices = 1, getenv("GPU_DRIVER_IS_IDLE") ? NOT_INITIALIZED : 0;
}

int cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
    const struct allocation *of = allocation_of(address);
    if (of && attribute == MEMORY_TYPE)
        *(int *)data = DEVICE;
    else if (of && attribute == IS_MANAGED)
        *(int *)data = of->is_managed;
    else if (of && attribute == RANGE_START)
        *(unsigned long long *)data = of->begin;
    else if (of && attribute == RANGE_BYTES)
        *(size_t *)data = of->end - of->begin;
    else
        return INVALID_VALUE;
    return 0;
}

struct hip_attributes {
    int type, device;
    const void *device_address, *host_address;
    int is_managed;
    unsigned flags;
};

int hipPointerGetAttributes(struct hip_attributes *attributes, const void *address)
{
    const struct allocation *of = allocation_of((uintptr_t)address);
    if (!of)
        return INVALID_VALUE;
    *attributes = (struct hip_attributes){.type = DEVICE, .device_address = address, .is_managed = of->is_managed};
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits for the device so long, as cuCtxSynchronize does: nearly always in its own code. */
void gpu_wait(double seconds)
{
    double end = now() + seconds;
    pthread_mutex_lock(&lock);
    while (now() < end)
        for (volatile int i = 0; i < 100000; i++)
            ;
    pthread_mutex_unlock(&lock);
}

/* For gpu_mpi.c: opens memory of a device, all of it for NULL, and closes it again. */
void gpu_open(const void *address, int is_open)
{
    for (int i = 0; i < count; i++)
        if (!address || (allocations[i].begin <= (uintptr_t)address && (uintptr_t)address < allocations[i].end))
            mprotect((void *)allocations[i].begin, allocations[i].end - allocations[i].begin, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
