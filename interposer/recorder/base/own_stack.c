#define _GNU_SOURCE
#include "own_stack.h"

#include <sys/mman.h>

enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 64 << 10 };

char *own_stack_make(size_t bytes)
{
    char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0)
        return NULL;
    return stack + bytes;
}

/* Unwinders find the caller by the frame pointer, which every function here has. */
__attribute__((noinline)) void own_stack_call_at(char *top, void (*function)(void *), void *argument)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[top], %%rsp\n\tcallq *%[function]\n\tmovq %%rbx, %%rsp"
                     : "+D"(argument)
                     : [top] "r"(top), [function] "r"(function)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc",
                       "memory");
#elif defined(__aarch64__)
    register void *x0 __asm__("x0") = argument;
    __asm__ volatile("mov x19, sp\n\tmov sp, %[top]\n\tblr %[function]\n\tmov sp, x19"
                     : "+r"(x0)
                     : [top] "r"(top), [function] "r"(function)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
                       "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                       "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
                       "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#endif
}

static struct {
    char *top;
    int in_use; /* atomic */
} of_process;

void own_stack_reserve(void)
{
    of_process.top = of_process.top ? of_process.top : own_stack_make(STACK_BYTES);
}

void own_stack_call(void (*function)(void *), void *argument)
{
    if (!of_process.top || __atomic_exchange_n(&of_process.in_use, 1, __ATOMIC_ACQUIRE)) {
        function(argument);
        return;
    }
    own_stack_call_at(of_process.top, function, argument);
    __atomic_store_n(&of_process.in_use, 0, __ATOMIC_RELEASE);
}
