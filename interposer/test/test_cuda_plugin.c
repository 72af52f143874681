/* The plugin that CUDA loads, with a stand-in for CUPTI: what it hands over, and that it keeps no process from ending. */
#define _GNU_SOURCE
#include "check.h"
#include "cuda_of_test.h"
#include "cupti_of_test.h"

#include "../preload/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENDS_WITHIN_S = 30 };
static const char *const taken_over = "another tool in the process may have taken CUPTI over";

__attribute__((visibility("default"))) struct lapscope_devices lapscope_devices = {.version = LAPSCOPE_DEVICES_VERSION};
static struct lapscope_device_busy taken[8];
static size_t taken_count;
static uint64_t lost;

/* From any thread. */
static void take(const struct lapscope_device_busy *busy, size_t count, uint64_t more_lost)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && taken_count < sizeof taken / sizeof *taken; i++)
        taken[taken_count++] = busy[i];
    lost += more_lost;
    pthread_mutex_unlock(&lock);
}

/* As CUDA does where something is recorded already. Returns the stand-in, or NULL where none was opened. */
static struct cupti_of_test *start(const char *plugin)
{
    void *library = dlopen(plugin, RTLD_NOW);
    int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    lapscope_devices.take = take;
    CHECK(initialize && initialize() == 1);
    void *cupti = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
    return cupti ? dlsym(cupti, "cupti_of_test") : NULL;
}

/* Has the stand-in hand over so many records. */
static const char *problem_after(struct cupti_of_test *cupti, size_t records)
{
    __atomic_store_n(&cupti->record_count, records, __ATOMIC_SEQ_CST);
    lapscope_devices.flush();
    return lapscope_devices.problem;
}

static int what_is_handed_over(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    CHECK(cupti && lapscope_devices.flush);
    CHECK_TEXT(lapscope_devices.source, "libcupti.so.12");
    const unsigned kinds = 1u << CUPTI_OF_MEMCPY | 1u << CUPTI_OF_MEMSET | 1u << CUPTI_OF_CONTEXT | 1u << CUPTI_OF_CONCURRENT_KERNEL | 1u << CUPTI_OF_PEER_MEMCPY;
    CHECK_EQUAL(cupti->enabled, kinds);
    cupti->records[0] = (struct cupti_record){.kind = CUPTI_OF_CONCURRENT_KERNEL, .start = 10, .end = 20, .kernel_device = 3};
    cupti->records[1] = (struct cupti_record){.kind = CUPTI_OF_PEER_MEMCPY, .start = 30, .end = 40, .device = 2};
    cupti->records[2] = (struct cupti_record){.kind = CUPTI_OF_MEMCPY, .copy_kind = CUPTI_COPY_TO_HOST, .start = 50, .end = 60};
    cupti->records[3] = (struct cupti_record){.kind = CUPTI_OF_MEMSET, .start = 70, .end = 70}; /* shorter than the clock's tick */
    CHECK_TEXT(problem_after(cupti, 4), "");
    CHECK_EQUAL(taken_count, 3);
    CHECK(taken[0].device == 0 && taken[0].work == DEVICE_TO_HOST && taken[0].begin_ns == 50);
    CHECK(taken[1].device == 2 && taken[1].work == DEVICE_OTHER && taken[1].begin_ns == 30);
    CHECK(taken[2].device == 3 && taken[2].work == DEVICE_KERNEL && taken[2].end_ns == 20);
    cupti->records[0].end = 0; /* goes on */
    const char *unended = "some GPU work had not ended, or CUPTI does not know its times";
    CHECK_TEXT(problem_after(cupti, 1), unended);
    CHECK_TEXT(problem_after(cupti, 0), unended);
    CHECK(taken_count == 3 && lost == 0);
    return check_summary();
}

/* Where the runtime is in the executable, other libraries of its toolkit say where that is. */
static int cupti_is_found_beside_a_library(const char *plugin)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/targets/x86_64-linux/lib/libcublas.so.12", getenv("CUDA_HOME"));
    unsetenv("CUDA_HOME");
    CHECK(dlopen(path, RTLD_NOW) != NULL);
    CHECK(start(plugin) != NULL);
    CHECK_TEXT(lapscope_devices.source, "libcupti.so.12");
    return check_summary();
}

static int a_refusal_has_its_number(const char *plugin)
{
    setenv("CUPTI_OF_TEST_REFUSES", "35", 1);
    CHECK(start(plugin) != NULL);
    CHECK_TEXT(lapscope_devices.problem, "this user may not use CUPTI (error 35)");
    CHECK(!lapscope_devices.flush);
    return check_summary();
}

static int a_taken_cupti_has_its_reason(const char *plugin)
{
    setenv("CUPTI_OF_TEST_IS_TAKEN", "39", 1);
    CHECK(start(plugin) != NULL);
    CHECK_TEXT(lapscope_devices.problem, "another tool in the process has CUPTI");
    CHECK(!lapscope_devices.flush && !lapscope_devices.asked);
    return check_summary();
}

/* As PyTorch is, whose profiler may be CUPTI's client whenever it likes. */
static int who_is_linked_with_it_keeps_it(const char *plugin)
{
    CHECK(dlopen(PROFILER, RTLD_NOW) != NULL);
    struct cupti_of_test *cupti = start(plugin);
    CHECK_TEXT(lapscope_devices.problem, "the program is linked with CUPTI, and may profile itself");
    CHECK(cupti && !cupti->enabled && !lapscope_devices.flush);
    return check_summary();
}

/* The one that the program has is used, and no other is opened. */
static int who_is_linked_with_it_shares_it(const char *plugin)
{
    setenv("CUDA_HOME", "/nowhere", 1);
    CHECK(dlopen(PROFILER, RTLD_NOW) != NULL);
    lapscope_devices.shares = 1;
    struct cupti_of_test *cupti = start(plugin);
    CHECK_TEXT(lapscope_devices.source, "libcupti.so.12");
    cupti->records[0] = (struct cupti_record){.kind = CUPTI_OF_CONCURRENT_KERNEL, .start = 10, .end = 20};
    CHECK_TEXT(problem_after(cupti, 1), "");
    CHECK_EQUAL(taken_count, 1);
    lapscope_devices.asked("cuptiSubscribe");
    CHECK_TEXT(problem_after(cupti, 0), taken_over);
    return check_summary();
}

/* Rather than no kernel at all, the reason is said why none may have been reported. */
static int silence_is_a_problem(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    CHECK_TEXT(problem_after(cupti, 0), "CUPTI has reported nothing, not even a context");
    cupti->records[0] = (struct cupti_record){.kind = CUPTI_OF_CONTEXT};
    CHECK_TEXT(problem_after(cupti, 1), ""); /* the program has a GPU, and uses it for nothing */
    CHECK(taken_count == 0 && lost == 0);
    cupti->dropped = 7;
    problem_after(cupti, 0);
    CHECK_EQUAL(lost, 7);
    cupti->keeps_buffer = 1;
    problem_after(cupti, 1);
    CHECK_TEXT(problem_after(cupti, 0), "CUPTI has kept a buffer of records");
    return check_summary();
}

/* Also behind later flushes that are well: as where a session ends before others, or before MPI_Finalize. */
static int an_error_is_a_problem_to_the_end(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    cupti->flush_error = 15;
    CHECK_TEXT(problem_after(cupti, 1), "CUPTI gave error 15 instead of its last records");
    cupti->flush_error = 0;
    CHECK_TEXT(problem_after(cupti, 1), "CUPTI gave error 15 instead of its last records");
    return check_summary();
}

static void flush_behind_the_end(void)
{
    lapscope_devices.flush();
    CHECK_TEXT(lapscope_devices.problem, "the process was ending before MPI_Finalize");
    _exit(check_summary());
}

/* MPI_Finalize in an exit handler that the program registered first. */
static int a_flush_behind_the_end_is_a_problem(const char *plugin)
{
    atexit(flush_behind_the_end); /* before the plugin registers its own, so behind it */
    start(plugin);
    return 0;
}

/* The plugin's thread looks ten times a second. */
static void wait_for_looks(struct cuda_of_test *driver)
{
    unsigned begin = __atomic_load_n(&driver->looked, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&driver->looked, __ATOMIC_SEQ_CST) < begin + 2)
        usleep(1000);
}

/* The one that loads the plugin. */
static struct cuda_of_test *open_driver(void)
{
    void *library = dlopen(DRIVER, RTLD_NOW);
    CHECK(library != NULL);
    return dlsym(library, "cuda_of_test");
}

/* As of an MPI that only looks for GPUs. */
static int who_opens_no_gpu_uses_none(const char *plugin)
{
    struct cuda_of_test *driver = open_driver();
    driver->count_error = 3; /* it starts */
    struct cupti_of_test *cupti = start(plugin);
    wait_for_looks(driver);
    driver->count_error = 0;
    CHECK_TEXT(problem_after(cupti, 0), "");
    driver->has_current_context = 1;
    CHECK_TEXT(problem_after(cupti, 0), "CUPTI has reported nothing, not even a context");
    return check_summary();
}

/* As of a program that calls cudaDeviceReset before MPI_Finalize. */
static int a_context_that_is_gone_was_one(const char *plugin)
{
    struct cuda_of_test *driver = open_driver();
    struct cupti_of_test *cupti = start(plugin);
    driver->has_primary_context = 1;
    wait_for_looks(driver);
    driver->has_primary_context = 0;
    CHECK_TEXT(problem_after(cupti, 0), "CUPTI has reported nothing, not even a context");
    cupti->records[0] = (struct cupti_record){.kind = CUPTI_OF_CONTEXT};
    CHECK_TEXT(problem_after(cupti, 1), "");
    unsigned looked = __atomic_load_n(&driver->looked, __ATOMIC_SEQ_CST);
    usleep(300000);
    CHECK_EQUAL(__atomic_load_n(&driver->looked, __ATOMIC_SEQ_CST), looked); /* CUPTI tells */
    return check_summary();
}

static int who_asks_for_its_functions_may_take_cupti_over(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    lapscope_devices.asked("cuptiGetTimestamp");
    lapscope_devices.asked("cuInit");
    CHECK_TEXT(problem_after(cupti, 1), "");
    lapscope_devices.asked("cuptiActivityRegisterCallbacks_v2");
    CHECK_TEXT(problem_after(cupti, 1), taken_over);
    CHECK_EQUAL(cupti->record_count, 1); /* it is the other's */
    return check_summary();
}

static int who_is_linked_with_it_may_take_cupti_over(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    CHECK_TEXT(problem_after(cupti, 1), "");
    void *profiler = dlopen(PROFILER, RTLD_NOW);
    CHECK(profiler != NULL);
    cupti->was_forced = 0;
    CHECK_TEXT(problem_after(cupti, 1), taken_over);
    CHECK(cupti->record_count == 0 && !cupti->was_forced);
    CHECK(dlclose(profiler) == 0 && !dlopen(PROFILER, RTLD_NOW | RTLD_NOLOAD));
    CHECK_TEXT(problem_after(cupti, 0), taken_over); /* what it took is gone with it */
    return check_summary();
}

static int an_abort_keeps_what_is_lost(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    lapscope_devices.flush_at_end();
    CHECK_TEXT(lapscope_devices.problem, ""); /* a silent CUPTI is known of no rank that ends like this */
    CHECK(dlopen(PROFILER, RTLD_NOW) != NULL);
    lapscope_devices.flush_at_end();
    CHECK_TEXT(lapscope_devices.problem, taken_over);
    CHECK(cupti != NULL);
    return check_summary();
}

static void hang_in_flush(struct cupti_of_test *cupti)
{
    __atomic_store_n(&cupti->hangs, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&cupti->is_in_flush, __ATOMIC_SEQ_CST))
        usleep(1000);
}

/* The child has no thread that flushes, which held a lock when it was made. */
static int a_forked_child_ends(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    int status = -1;
    hang_in_flush(cupti);
    pid_t child = fork();
    if (!child) {
        alarm(ENDS_WITHIN_S / 2);
        exit(0);
    }
    waitpid(child, &status, 0);
    CHECK_EQUAL(status, 0);
    __atomic_store_n(&cupti->hangs, 0, __ATOMIC_SEQ_CST);
    return check_summary();
}

/* Who aborts has what ended last on record, and is not kept by a CUPTI that waits for a lock of his. */
static int what_is_there_at_an_abort(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    cupti->records[0] = (struct cupti_record){.kind = CUPTI_OF_CONCURRENT_KERNEL, .start = 10, .end = 20};
    __atomic_store_n(&cupti->record_count, 1, __ATOMIC_SEQ_CST);
    lapscope_devices.flush_at_end();
    CHECK_EQUAL(__atomic_load_n(&cupti->was_forced, __ATOMIC_SEQ_CST), 1);
    CHECK_EQUAL(taken_count, 1);
    return check_summary();
}

/* Who has a buffer back on a thread of CUPTI's has its rows, too. */
static void check_slow_rows(struct cupti_of_test *cupti, void (*flush)(void))
{
    for (int i = 0; i < 4; i++)
        cupti->records[i] = (struct cupti_record){.kind = CUPTI_OF_CONCURRENT_KERNEL, .start = 10 + 10 * (uint64_t)i, .end = 15 + 10 * (uint64_t)i};
    cupti->hold(4);
    flush();
    CHECK_EQUAL(taken_count, 4);
}

static int the_end_waits_for_slow_rows(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    check_slow_rows(cupti, lapscope_devices.flush);
    CHECK_TEXT(lapscope_devices.problem, "");
    return check_summary();
}

/* As of a driver that hangs; what comes when it goes on again makes it good. */
static int the_end_does_not_wait_for_ever(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    cupti->records[0] = (struct cupti_record){.kind = CUPTI_OF_CONTEXT};
    hang_in_flush(cupti);
    CHECK_TEXT(problem_after(cupti, 1), "some GPU work was not handed over by CUPTI within 1 s");
    __atomic_store_n(&cupti->hangs, 0, __ATOMIC_SEQ_CST);
    CHECK_TEXT(problem_after(cupti, 1), "");
    return check_summary();
}

static int has_no_threads;

/* As the plugin finds it; also where a system lets nobody have more. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = NULL;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return has_no_threads ? EAGAIN : create(thread, attributes, begin, argument);
}

static int without_a_thread_the_end_flushes(const char *plugin)
{
    has_no_threads = 1;
    struct cupti_of_test *cupti = start(plugin);
    has_no_threads = 0;
    check_slow_rows(cupti, lapscope_devices.flush);
    CHECK_TEXT(lapscope_devices.problem, "");
    return check_summary();
}

static int an_abort_waits_for_slow_rows(const char *plugin)
{
    struct cupti_of_test *cupti = start(plugin);
    check_slow_rows(cupti, lapscope_devices.flush_at_end);
    return check_summary();
}

static int an_abort_does_not_wait_for_ever(const char *plugin)
{
    hang_in_flush(start(plugin));
    lapscope_devices.flush_at_end();
    return check_summary();
}

/* Exits where CUPTI waits for a lock of whoever exits. */
static int exit_does_not_wait_for_ever(const char *plugin)
{
    hang_in_flush(start(plugin));
    return check_summary();
}

/* Each in a process of its own, as CUDA loads a plugin once. */
static void in_a_process(int (*test)(const char *plugin), const char *plugin)
{
    int status = -1;
    pid_t child = fork();
    if (!child) {
        alarm(ENDS_WITHIN_S);
        exit(test(plugin));
    }
    waitpid(child, &status, 0);
    CHECK_EQUAL(status, 0);
}

int main(int argc, char **argv)
{
    CHECK_EQUAL(argc, 3);
    setenv("CUDA_HOME", argv[2], 1);
    in_a_process(what_is_handed_over, argv[1]);
    in_a_process(cupti_is_found_beside_a_library, argv[1]);
    in_a_process(a_refusal_has_its_number, argv[1]);
    in_a_process(a_taken_cupti_has_its_reason, argv[1]);
    in_a_process(who_is_linked_with_it_keeps_it, argv[1]);
    in_a_process(who_is_linked_with_it_shares_it, argv[1]);
    in_a_process(an_error_is_a_problem_to_the_end, argv[1]);
    in_a_process(a_flush_behind_the_end_is_a_problem, argv[1]);
    in_a_process(silence_is_a_problem, argv[1]);
    in_a_process(who_opens_no_gpu_uses_none, argv[1]);
    in_a_process(a_context_that_is_gone_was_one, argv[1]);
    in_a_process(who_asks_for_its_functions_may_take_cupti_over, argv[1]);
    in_a_process(who_is_linked_with_it_may_take_cupti_over, argv[1]);
    in_a_process(an_abort_keeps_what_is_lost, argv[1]);
    in_a_process(a_forked_child_ends, argv[1]);
    in_a_process(what_is_there_at_an_abort, argv[1]);
    in_a_process(the_end_waits_for_slow_rows, argv[1]);
    in_a_process(the_end_does_not_wait_for_ever, argv[1]);
    in_a_process(without_a_thread_the_end_flushes, argv[1]);
    in_a_process(an_abort_waits_for_slow_rows, argv[1]);
    in_a_process(an_abort_does_not_wait_for_ever, argv[1]);
    in_a_process(exit_does_not_wait_for_ever, argv[1]);
    return check_summary();
}
