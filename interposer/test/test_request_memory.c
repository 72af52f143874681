/* The memory of a request's data: whether a driver is asked, how seldom, and for how long what it said is believed. */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"
#include "cuda_of_test.h"

#include "../recorder/base/accelerator.h"
#include "../recorder/record/request_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

static char device[1 << 16], host[1 << 16] __attribute__((aligned(4096))); /* nobody touches either */
static struct cuda_of_test *driver;

static enum spool_data_memory posted(struct thread *t, const void *sends, const void *receives)
{
    struct spool_live live = {.injection_arm = 2};
    request_memory_posted(t, &live, sends, receives);
    CHECK_EQUAL(live.injection_arm & SPOOL_LIVE_ARM, 2);
    return request_memory_of(&live);
}

static void test_without_a_driver(struct thread *t)
{
    request_memory_look(t);
    CHECK(!t->gives_buffers);
    CHECK_EQUAL(posted(t, host, NULL), SPOOL_MEMORY_UNKNOWN);
    CHECK(!accelerator_holds(host, 1) && !accelerator_may_be_used());
}

/* An MPI or a library brought it; it has no device; it is the one that programs are linked with. */
static void test_unused_drivers(void)
{
    const int errors[] = {3, 100, 34, 0};
    driver->has_no_device = 1;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        driver->count_error = errors[i];
        CHECK(!accelerator_may_be_used());
    }
    driver->count_error = 999; /* CUDA_ERROR_UNKNOWN */
    CHECK(accelerator_may_be_used());
    driver->has_no_device = driver->count_error = 0;
}

static void test_a_driver_comes(struct thread *t, const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    driver = dlsym(library, "cuda_of_test");
    *driver = (struct cuda_of_test){.begin = (uintptr_t)device, .bytes = sizeof device};
    request_memory_look(t);
    CHECK(t->gives_buffers);
    CHECK_TEXT(accelerator_library(), "libcuda");
    CHECK(accelerator_may_be_used());
    test_unused_drivers();
}

static void test_kinds(struct thread *t)
{
    CHECK_EQUAL(posted(t, device, NULL), SPOOL_MEMORY_DEVICE);
    CHECK_EQUAL(posted(t, NULL, host), SPOOL_MEMORY_HOST);
    CHECK_EQUAL(posted(t, host, device + 8), SPOOL_MEMORY_DEVICE);
    CHECK_EQUAL(posted(t, NULL, NULL), SPOOL_MEMORY_UNKNOWN);
    struct spool_live made = {0};
    request_memory_made(t, &made, device, NULL);
    CHECK_EQUAL(made.memory, SPOOL_MEMORY_DEVICE);
    CHECK_EQUAL(made.injection_arm, 0);
}

static void wait_ms(long ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

/* One question for all of a range, unless that takes longer than what was said is believed. */
static void test_a_range_is_asked_for_once(struct thread *t)
{
    unsigned least = ~0u;
    for (int turn = 0; turn < 100 && least > 1; turn++) {
        wait_ms(20);
        unsigned before = driver->asked;
        for (size_t at = 0; at < sizeof device; at += 64)
            CHECK_EQUAL(posted(t, device + at, NULL), SPOOL_MEMORY_DEVICE);
        least = driver->asked - before < least ? driver->asked - before : least;
    }
    CHECK_EQUAL(least, 1);
}

/* A buffer may begin in one kind of memory and go on in another. */
static void test_all_of_a_buffer(void)
{
    struct cuda_of_test before = *driver;
    driver->begin = (uintptr_t)host + 32768, driver->bytes = 16384;
    CHECK(accelerator_holds(host, sizeof host) && !accelerator_holds(host, 32768) && accelerator_holds(host, 32769));
    CHECK(!accelerator_holds(host + 49152, 16384) && accelerator_holds(host + 49151, 1));
    driver->begin = before.begin, driver->bytes = before.bytes;
    CHECK(!accelerator_holds(host, sizeof host) && accelerator_holds(device, 0));
}

/* Memory is freed, and its addresses are another's: who touches it is told at once, and records are right 10 ms later. */
static void test_what_changes_hands(struct thread *t)
{
    CHECK_EQUAL(posted(t, host, NULL), SPOOL_MEMORY_HOST);
    CHECK(!accelerator_holds(host, 1));
    *driver = (struct cuda_of_test){.begin = (uintptr_t)host, .bytes = sizeof host, .is_managed = 1};
    CHECK(accelerator_holds(host, 1) && !accelerator_holds(device, 1));
    wait_ms(20);
    CHECK_EQUAL(posted(t, host, NULL), SPOOL_MEMORY_MANAGED);
    CHECK_EQUAL(posted(t, device, NULL), SPOOL_MEMORY_HOST);
}

/* CUDA forbids it calls on threads of its own, on which it calls the program back: nothing is known there, and nothing touched. */
static void *called_back_by_cuda(void *unused)
{
    unsigned before = driver->asked;
    prctl(PR_SET_NAME, "cuda-EvtHandlr");
    struct thread *t = bring_up();
    request_memory_look(t);
    CHECK_EQUAL(posted(t, host, NULL), SPOOL_MEMORY_UNKNOWN);
    CHECK(accelerator_holds(host, 1));
    CHECK_EQUAL(driver->asked, before);
    return unused;
}

/* Threads have the name of their program, which may be that. */
static void *named_after_cuda(void *unused)
{
    static int number;
    const char *names[] = {"cuda_jacobi2", "cuda7"};
    program_invocation_short_name = (char *)names[number++];
    prctl(PR_SET_NAME, program_invocation_short_name);
    struct thread *t = bring_up();
    wait_ms(20); /* what a thread before it was not told is believed as long */
    request_memory_look(t);
    CHECK(posted(t, host, NULL) != SPOOL_MEMORY_UNKNOWN);
    return unused;
}

static void test_threads_of_the_driver(void)
{
    void *(*named[])(void *) = {called_back_by_cuda, named_after_cuda, named_after_cuda};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, named[i], NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
}

int main(int argc, char **argv)
{
    CHECK_EQUAL(argc, 2);
    struct thread *t = bring_up();
    test_without_a_driver(t);
    test_a_driver_comes(t, argv[1]);
    test_kinds(t);
    test_a_range_is_asked_for_once(t);
    test_all_of_a_buffer();
    test_what_changes_hands(t);
    test_threads_of_the_driver();
    tear_down();
    return check_summary();
}
