#define _GNU_SOURCE
#include "own_stack.h"

#include <stddef.h>
#include <sys/mman.h>

enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 1 << 16 };

static struct {
    char *end;
    int in_use; /* atomic */
} stack;

void own_stack_reserve(void)
{
    if (stack.end)
        return;
    char *begin = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (begin == MAP_FAILED)
        return;
    mprotect(begin, GUARD_BYTES, PROT_NONE);
    stack.end = begin + GUARD_BYTES + STACK_BYTES;
}

/* Unwinders find the caller by the frame pointer, which every function here has. */
static __attribute__((noinline)) void call_at(char *end, void (*function)(void *), void *argument)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[end], %%rsp\n\t"
                     "call *%[function]\n\t"
                     "movq %%rbx, %%rsp"
                     : "+D"(argument)
                     : [end] "r"(end), [function] "r"(function)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#elif defined(__aarch64__)
    register void *first __asm__("x0") = argument;
    __asm__ volatile("mov x19, sp\n\t"
                     "mov sp, %[end]\n\t"
                     "blr %[function]\n\t"
                     "mov sp, x19"
                     : "+r"(first)
                     : [end] "r"(end), [function] "r"(function)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                       "x19", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
                       "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
                       "v29", "v30", "v31");
#endif
}

void own_stack_call(void (*function)(void *), void *argument)
{
    if (!stack.end || __atomic_exchange_n(&stack.in_use, 1, __ATOMIC_ACQUIRE)) {
        function(argument);
        return;
    }
    call_at(stack.end, function, argument);
    __atomic_store_n(&stack.in_use, 0, __ATOMIC_RELEASE);
}
