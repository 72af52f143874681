/* _exit() runs no destructors, and so tells nobody that a program has left by itself. */
#define _GNU_SOURCE
#include "next_dlsym.h"
#include "symbols.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void (*lapscope_exit_hook)(void);

/* The next in line: another tool's, or the C library's. */
static void (*next_exit)(int), (*next_c_exit)(int);

__attribute__((constructor)) static void find_next(void)
{
    next_exit = (void (*)(int))next_dlsym()(RTLD_NEXT, "_exit");
    next_c_exit = (void (*)(int))next_dlsym()(RTLD_NEXT, "_Exit");
}

/* May be called in a signal handler, and in a child that shares its parent's memory (vfork). */
static inline __attribute__((always_inline, noreturn)) void leave(void (*next)(int), int status)
{
    if (lapscope_exit_hook)
        lapscope_exit_hook();
    if (next)
        next(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    leave(next_exit, status);
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status)
{
    leave(next_c_exit, status);
}
