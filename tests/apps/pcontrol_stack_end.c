/*
 * MPI_Pcontrol by the first function of a coroutine, whose stack ends where further arguments would begin.
 * Rows: the message.
 */
#include "check.h"

#include <sys/mman.h>

enum { STACK_BYTES = 1 << 20 };

/* Called with the stack pointer at `end`. */
static void control_at(char *end)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tmovl $7, %%edi\n\txorl %%esi, %%esi\n\txorl %%eax, %%eax\n\t"
                     "call MPI_Pcontrol@PLT\n\tmovq %%rbx, %%rsp"
                     :
                     : "r"(end)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#else
    (void)end;
    MPI_Pcontrol(7);
#endif
}

int main(int argc, char **argv)
{
    char data[8];
    int rank = start(&argc, &argv, 2);
    char *stack = mmap(NULL, 2 * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE) == 0);
    control_at(stack + STACK_BYTES);
    fill(data, sizeof data, 1);
    if (rank == 0)
        MPI_Send(data, sizeof data, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    else
        MPI_Recv(data, sizeof data, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(data, sizeof data, 1));
    MPI_Finalize();
    return 0;
}
