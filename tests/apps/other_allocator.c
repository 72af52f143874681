/*
 * An allocator in LD_PRELOAD: hands everything to libc's, and says at the end of an MPI program whether it has served the
 * thousand pieces of allocating.c. MPIs may allocate fewer than a hundred themselves: Intel's does.
 */
#include <stddef.h>
#include <stdio.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void __libc_free(void *old);
extern int MPI_Initialized(int *flag) __attribute__((weak));

static unsigned long served;

void *malloc(size_t bytes)
{
    __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return __libc_realloc(old, bytes);
}

void free(void *old)
{
    __libc_free(old);
}

__attribute__((destructor)) static void say(void)
{
    if (MPI_Initialized)
        puts(served >= 1000 ? "the allocator was used" : "the allocator was not used");
}
