/*
 * Who blocks signals may look for them then (sigwait, sigpending, signalfd): an alarm of the recorder's is taken back before, and set
 * again when they are let through.
 */
#define _GNU_SOURCE
#include "next_dlsym.h"
#include "symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

void (*lapscope_mask_hook)(int how, const sigset_t *set);

typedef int change_fn(int how, const sigset_t *set, sigset_t *before);

/* The next in line: another tool's, or the C library's. */
static change_fn *next_of_thread, *next_of_process;

__attribute__((constructor)) static void find_next(void)
{
    next_of_thread = (change_fn *)next_dlsym()(RTLD_NEXT, "pthread_sigmask");
    next_of_process = (change_fn *)next_dlsym()(RTLD_NEXT, "sigprocmask");
}

/* Before our constructor has run. May be called in signal handlers, so that nothing is looked up here. As the C library does, but
 * for signals of its own, which it does not use before threads are there. */
static int ask_kernel(int how, const sigset_t *set, sigset_t *before)
{
    enum { KERNEL_BYTES = 8 };
    if (before)
        sigemptyset(before);
    return (int)syscall(SYS_rt_sigprocmask, how, set, before, KERNEL_BYTES);
}

static inline void tell(int how, const sigset_t *set)
{
    if (set && lapscope_mask_hook)
        lapscope_mask_hook(how, set);
}

__attribute__((visibility("default"))) int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    tell(how, set);
    if (next_of_thread)
        return next_of_thread(how, set, before);
    int saved_errno = errno, failed = ask_kernel(how, set, before) ? errno : 0;
    errno = saved_errno;
    return failed;
}

__attribute__((visibility("default"))) int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    tell(how, set);
    return next_of_process ? next_of_process(how, set, before) : ask_kernel(how, set, before);
}
