/*
 * A program whose coroutines call MPI, each from a stack of its own, and go on with each other's requests: a task posts, another runs
 * meanwhile, and the scheduler's stack completes. Prints how many messages arrived as they were sent.
 */
#include "work.h"

#include <sys/mman.h>
#include <ucontext.h>

enum { TASKS = 100, STEPS = 20, STACK_BYTES = 1 << 16, BYTES = 512 };

static ucontext_t scheduler, tasks[TASKS];
static MPI_Request requests[TASKS][2];
static char sent[TASKS][BYTES], received[TASKS][BYTES];
static int good;

SITE void post(int task, int step)
{
    fill(sent[task], BYTES, task + step);
    MPI_Irecv(received[task], BYTES, MPI_BYTE, 0, task, MPI_COMM_SELF, &requests[task][0]);
    MPI_Isend(sent[task], BYTES, MPI_BYTE, 0, task, MPI_COMM_SELF, &requests[task][1]);
}

static void run(int task)
{
    for (int step = 0; step < STEPS; step++) {
        post(task, step);
        swapcontext(&tasks[task], &scheduler);
        if (step % 2)
            MPI_Waitall(2, requests[task], MPI_STATUSES_IGNORE);
        good += holds(received[task], BYTES, task + step);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int task = 0; task < TASKS; task++) {
        char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stack != MAP_FAILED && getcontext(&tasks[task]) == 0);
        tasks[task].uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
        tasks[task].uc_link = &scheduler;
        makecontext(&tasks[task], (void (*)(void))run, 1, task);
    }
    for (int step = 0; step <= STEPS; step++)
        for (int task = 0; task < TASKS; task++) {
            swapcontext(&scheduler, &tasks[task]);
            if (step % 2 == 0 && step < STEPS)
                MPI_Waitall(2, requests[task], MPI_STATUSES_IGNORE);
        }
    printf("%d of %d\n", good, TASKS * STEPS);
    MPI_Finalize();
    return 0;
}
