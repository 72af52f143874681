/*
 * A stand-in for CUDA's driver: its memory is there, and nobody but the driver may touch it. The MPI that knows such memory is
 * gpu_mpi.c. Its functions have the names and arguments of cuda.h.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { MOST = 64, HOST = 1, DEVICE = 2, MEMORY_TYPE = 2, IS_MANAGED = 8, INVALID_VALUE = 1 };

static struct { uintptr_t begin, end; } allocations[MOST];
static int count;

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || count == MOST)
        return 2;
    allocations[count].begin = (uintptr_t)memory;
    allocations[count++].end = (uintptr_t)memory + bytes;
    *address = (uintptr_t)memory;
    return 0;
}

int cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
    for (int i = 0; i < count; i++)
        if (allocations[i].begin <= address && address < allocations[i].end) {
            if (attribute == MEMORY_TYPE)
                *(int *)data = DEVICE;
            else if (attribute == IS_MANAGED)
                *(int *)data = 0;
            else
                return INVALID_VALUE;
            return 0;
        }
    return INVALID_VALUE;
}

/* For gpu_mpi.c: opens memory of a device, and closes it again. */
int gpu_open(const void *address, int is_open)
{
    for (int i = 0; i < count; i++)
        if (allocations[i].begin <= (uintptr_t)address && (uintptr_t)address < allocations[i].end)
            return mprotect((void *)allocations[i].begin, allocations[i].end - allocations[i].begin,
                            is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    return 0;
}
