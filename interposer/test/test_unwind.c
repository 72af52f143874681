/*
 * Callers, as the C library's own unwinder finds them: through frames of every kind, signal handlers on any stack, coroutines,
 * threads, and functions of libraries; with and without what is remembered of frames.
 */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/base/own_memory.h"
#include "../recorder/record/unwind.h"

#include <alloca.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 200, STACK = 1 << 16 };

static unsigned long compared;
static int has_copies; /* an emulator has none: then other stacks than the thread's own are not looked at */
static volatile unsigned sink;

static void bounds(uintptr_t *begin, uintptr_t *end)
{
    pthread_attr_t attributes;
    void *stack;
    size_t bytes;
    CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
    *begin = (uintptr_t)stack;
    *end = *begin + bytes;
}

static void compare_with(void **expected, int count, uintptr_t begin, uintptr_t end, struct unwind_room *room)
{
    unwind_begin(room, begin, end);
    CHECK(unwind_step(room) == 1); /* to compare() */
    for (int i = 1; i < count; i++) {
        CHECK(unwind_step(room) == 1);
        CHECK_EQUAL(room->cursor.ip, (uintptr_t)expected[i]);
        compared++;
    }
    CHECK(unwind_step(room) <= 0);
}

static __attribute__((noinline)) void compare(void)
{
    static struct unwind_room room, fresh;
    void *expected[MOST];
    uintptr_t begin, end;
    int count = backtrace(expected, MOST);
    bounds(&begin, &end);
    unwind_refresh(&room);
    memset(&fresh, 0, sizeof fresh);
    compare_with(expected, count, begin, end, &fresh);
    compare_with(expected, count, begin, end, &room);
    compare_with(expected, count, begin, end, &room);
    if (has_copies)
        compare_with(expected, count, 0, 0, &room); /* as of a stack that is not known */
    sink++;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void dynamic(unsigned depth);

static __attribute__((noinline)) void aligned(unsigned depth)
{
    _Alignas(64) volatile unsigned char room[64];
    volatile unsigned char *more = alloca(16 + depth * 8);
    room[depth] = more[0] = (unsigned char)depth;
    if (depth)
        dynamic(depth - 1);
    compare();
    sink = room[depth] + more[0];
}

static __attribute__((noinline)) void dynamic(unsigned depth)
{
    volatile unsigned char room[1 + depth * 24];
    room[depth] = 1;
    if (depth)
        aligned(depth - 1);
    compare();
    sink = room[depth];
}

static int by_nothing(const void *a, const void *b)
{
    (void)a, (void)b;
    compare();
    return 0;
}

/* Calls that are the last instruction of their function, as what does not return may be. */
static ucontext_t out;

static __attribute__((noinline, noreturn)) void never_returns(void)
{
    compare();
    setcontext(&out);
    abort();
}

static __attribute__((noinline)) void ends_with_a_call(void)
{
    never_returns();
}

/* --- signals and stacks ------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static volatile sig_atomic_t handled;

static void handler(int number)
{
    (void)number;
    compare();
    handled++;
}

static __attribute__((noinline)) void interrupted(void)
{
    raise(SIGUSR1);
    *(volatile unsigned *)&sink = 1;
    kill(getpid(), SIGUSR1);
    __asm__ volatile("ud2"); /* in the middle of a function, outside of any call */
    sink++;
}

static void skip(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    compare();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void with_signals(int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct sigaction illegal = {.sa_sigaction = skip, .sa_flags = flags | SA_SIGINFO};
    stack_t stack = {.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = STACK};
    CHECK(sigaltstack(&stack, NULL) == 0);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGILL, &illegal, NULL);
    int before = handled;
    interrupted();
    CHECK_EQUAL(handled - before, 2);
}

#else
static void with_signals(int flags)
{
    (void)flags; /* nothing says how the frame of a handler's return is left: callsite.c follows frame records there */
}
#endif

static ucontext_t back, there;

static void coroutine(void)
{
    dynamic(4);
    aligned(3);
}

static void with_coroutine(void)
{
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &back;
    makecontext(&there, coroutine, 0);
    swapcontext(&back, &there);
}

static void *thread(void *nothing)
{
    dynamic(5);
    return nothing;
}

/* What is open, as bits of its number. */
static uint64_t open_numbers(void)
{
    uint64_t open = 0;
    for (int number = 0; number < 64; number++)
        open |= (uint64_t)(fcntl(number, F_GETFD) >= 0) << number;
    return open;
}

int main(void)
{
    void *warm_up[2];
    int numbers[] = {3, 1, 2, 7, 5};
    pthread_t other;
    backtrace(warm_up, 2); /* it loads a library */
    uint64_t open_before = open_numbers();
    has_copies = own_memory_read(warm_up, (uintptr_t)numbers, sizeof warm_up) == sizeof warm_up;
    compare();
    dynamic(6);
    aligned(7);
    qsort(numbers, 5, sizeof numbers[0], by_nothing);
    static volatile int returned;
    getcontext(&out);
    if (!returned++)
        ends_with_a_call();
    with_signals(0);
    if (has_copies) {
        with_signals(SA_ONSTACK);
        with_coroutine();
    } else {
        puts("NOT TESTED: other stacks");
    }
    CHECK(pthread_create(&other, NULL, thread, NULL) == 0 && pthread_join(other, NULL) == 0);
    CHECK_EQUAL(open_numbers(), open_before);
    CHECK(compared > 300);
    printf("%lu frames as the C library finds them\n", compared);
    return check_summary();
}
