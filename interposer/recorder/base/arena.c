#define _GNU_SOURCE
#include "arena.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 1 << 20, ALIGN = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *free_begin, *free_end;

static void *map(size_t bytes)
{
    int saved_errno = errno;
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return mapped == MAP_FAILED ? NULL : mapped;
}

void *arena_alloc(size_t bytes)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > BLOCK_BYTES / 4)
        return map(bytes);
    pthread_mutex_lock(&lock);
    if ((size_t)(free_end - free_begin) < bytes) {
        char *block = map(BLOCK_BYTES);
        free_begin = block;
        free_end = block ? block + BLOCK_BYTES : NULL;
    }
    void *taken = free_begin;
    if (taken)
        free_begin += bytes;
    pthread_mutex_unlock(&lock);
    return taken;
}
