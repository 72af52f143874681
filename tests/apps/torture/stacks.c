/*
 * Stacks while messages are pending: jumps out of deep calls and out of the program's own signal handler; coroutines on stacks of
 * 16 KB with nothing behind them; recursion until nearly nothing is left of the thread's stack.
 */
#include "traffic.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { STEPS = 100000, SMALL_STACK = 16384, COROUTINES = 3, SWITCHES = 30, DEPTH = 50, ROUNDS = 80, KEPT_FREE = 8192 };

static jmp_buf way_back;
static sigjmp_buf way_out;
static volatile int visited;
static ucontext_t scheduler, coroutines[COROUTINES];
static char *lowest;

static void go_down(int depth)
{
    volatile char frame[100];
    frame[0] = (char)depth;
    visited += 1 + (arithmetic(STEPS / 100) > 2.0);
    if (visited == DEPTH)
        longjmp(way_back, 1);
    if (depth < DEPTH)
        go_down(depth + 1);
    visited += frame[0];
}

static void jump(void)
{
    visited = 0;
    if (setjmp(way_back) == 0)
        go_down(1);
    CHECK(visited == DEPTH);
}

static pthread_t main_thread;

static void leave(int signal)
{
    (void)signal;
    CHECK(pthread_equal(pthread_self(), main_thread));
    siglongjmp(way_out, 1);
}

/* The timer ends the computation where it happens to be, unless that is done before. */
static void be_interrupted(void)
{
    struct itimerval soon = {{0, 0}, {0, 700}}, never = {{0, 0}, {0, 0}};
    if (sigsetjmp(way_out, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        CHECK(arithmetic(5 * STEPS) < 2.0);
        setitimer(ITIMER_REAL, &never, NULL);
    }
}

static void take_turns(int which)
{
    for (int i = 0; i < SWITCHES; i++) {
        CHECK(arithmetic(STEPS / 20) < 2.0);
        visited++;
        swapcontext(&coroutines[which], &scheduler);
    }
}

static char *make_stack(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *low = mmap(NULL, page + SMALL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(low != MAP_FAILED && mprotect(low, page, PROT_NONE) == 0);
    return low + page;
}

static void switch_stacks(void)
{
    static char *stacks[COROUTINES];
    visited = 0;
    for (int i = 0; i < COROUTINES; i++) {
        if (!stacks[i])
            stacks[i] = make_stack();
        getcontext(&coroutines[i]);
        coroutines[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = SMALL_STACK};
        coroutines[i].uc_link = &scheduler;
        makecontext(&coroutines[i], (void (*)(void))take_turns, 1, i);
    }
    for (int turn = 0; turn <= SWITCHES; turn++)
        for (int i = 0; i < COROUTINES; i++)
            swapcontext(&scheduler, &coroutines[i]);
    CHECK(visited == COROUTINES * SWITCHES);
}

static int fill_stack(int depth)
{
    volatile char frame[4000];
    frame[0] = 1;
    if ((char *)__builtin_frame_address(0) - sizeof frame - 1000 > lowest)
        return fill_stack(depth + 1) + frame[0];
    CHECK(arithmetic(STEPS) < 2.0);
    return frame[0];
}

/* What the system writes when it lets the program handle a signal must have room; nothing else needs to. */
static void find_lowest(void)
{
    pthread_attr_t about;
    void *low;
    size_t bytes;
    CHECK(pthread_getattr_np(pthread_self(), &about) == 0);
    CHECK(pthread_attr_getstack(&about, &low, &bytes) == 0);
    CHECK(pthread_attr_destroy(&about) == 0);
    if (bytes > 16u << 20)
        low = (char *)__builtin_frame_address(0) - (8u << 20);
    lowest = (char *)low + sysconf(_SC_MINSIGSTKSZ) + KEPT_FREE;
}

static void work(int round)
{
    (void)round;
    jump();
    be_interrupted();
    switch_stacks();
    CHECK(fill_stack(0) > 10);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    main_thread = pthread_self();
    CHECK(signal(SIGALRM, leave) != SIG_ERR);
    find_lowest();
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("jumped, switched, returned");
    MPI_Finalize();
    return 0;
}
