/*
 * An allocator that ends the program when it is entered on a thread that is inside it already, as it would be by a signal handler
 * that allocates. It hands everything to libc's, and takes longer, so that signals find it.
 */
#ifndef TRIPWIRE_H
#define TRIPWIRE_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *old);

static _Thread_local volatile int inside __attribute__((tls_model("initial-exec")));

static void enter(void)
{
    static const char said[] = "the allocator was entered while it was at work\n";
    if (inside && write(STDERR_FILENO, said, sizeof said - 1) > 0)
        _exit(98);
    inside = 1;
    for (volatile int i = 0; i < 100; i++)
        ;
}

static void *leave(void *block)
{
    inside = 0;
    return block;
}

void *malloc(size_t bytes)
{
    enter();
    return leave(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    enter();
    return leave(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes)
{
    enter();
    return leave(__libc_realloc(old, bytes));
}

void *memalign(size_t alignment, size_t bytes)
{
    enter();
    return leave(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = memalign(alignment, bytes);
    return *block ? 0 : ENOMEM;
}

void free(void *old)
{
    enter();
    __libc_free(old);
    leave(NULL);
}

#endif
