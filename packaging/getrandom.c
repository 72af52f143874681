/* Rust's standard library calls getrandom, which glibc has since 2.25 only; it knows what to do where the kernel has none. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("hidden"))) ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
    return syscall(SYS_getrandom, bytes, count, flags);
}
