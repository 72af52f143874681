/* Samples: of a thread that computes all are in the function that does, of one that sleeps there are none; and which sites have
 * requests under way. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/base/clock.h"
#include "../recorder/profile/posts.h"
#include "../recorder/profile/sampler.h"
#include "../recorder/profile/tasks.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile double kept;
static volatile int is_over;
static volatile pid_t other;

static uint64_t running_time(void)
{
    return clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

__attribute__((noinline)) static void compute(uint64_t ns)
{
    double value = kept;
    for (uint64_t begin = running_time(); running_time() - begin < ns;)
        for (int i = 0; i < 100000; i++)
            value = value * 0.999 + 1.0;
    kept = value;
}

/* Samples, and in `inside` those of compute(). */
static unsigned count(struct sampler *sampler, unsigned *inside)
{
    uintptr_t address;
    unsigned samples = 0;
    *inside = 0;
    for (; sampler_next(sampler, &address); samples++)
        *inside += address - (uintptr_t)compute < 256;
    return samples;
}

static void a_thread_is_found_where_it_computes(struct sampler *sampler)
{
    unsigned inside, samples;
    count(sampler, &inside);
    compute(300000000);
    CHECK(sampler_has_more(sampler));
    samples = count(sampler, &inside);
    CHECK(samples >= 20 && samples <= 450); /* of 300: ticks of 4 to 10 ms where there is no event */
    CHECK(inside * 10 >= samples * 9);
    CHECK(!sampler_has_more(sampler));
}

static void who_sleeps_is_not_found(struct sampler *sampler)
{
    unsigned inside;
    count(sampler, &inside);
    usleep(300000);
    CHECK(count(sampler, &inside) <= 1);
}

static void *compute_until_over(void *argument)
{
    (void)argument;
    other = (pid_t)syscall(SYS_gettid);
    while (!is_over)
        compute(10000000);
    return NULL;
}

static void another_thread_is_found(void)
{
    pthread_t thread;
    pid_t tids[64];
    unsigned inside, tasks = tasks_count(), samples = 0;
    CHECK_EQUAL(pthread_create(&thread, NULL, compute_until_over, NULL), 0);
    while (!other)
        usleep(1000);
    CHECK_EQUAL(tasks_count(), tasks + 1);
    CHECK_EQUAL(tasks_list(tids, 64), tasks + 1);
    CHECK(tids[0] == other || tids[tasks] == other);
    struct sampler *sampler = sampler_open(other);
    CHECK(sampler != NULL);
    for (int i = 0; sampler && i < 2000 && samples < 20; i++) {
        usleep(10000);
        samples += count(sampler, &inside);
    }
    CHECK(samples >= 20);
    is_over = 1;
    pthread_join(thread, NULL);
    if (sampler)
        sampler_close(sampler);
}

static void a_child_has_none(void)
{
    pid_t child = fork();
    if (child == 0) {
        sampler_forget_all();
        compute(50000000);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void sites_are_a_set(void)
{
    struct posts one = {.paths = {0}}, other_way = one, many = one;
    posts_add(&one, 7, 3);
    posts_add(&one, 2, 5);
    posts_add(&one, 7, 3);
    posts_add(&one, 7, 1);
    posts_add(&other_way, 7, 1);
    posts_add(&other_way, 7, 3);
    posts_add(&other_way, 2, 5);
    CHECK_EQUAL(memcmp(&one, &other_way, sizeof one), 0);
    CHECK_EQUAL(one.paths[0], 2);
    CHECK_EQUAL(one.calls_plus_1[0], 6);
    CHECK_EQUAL(one.calls_plus_1[3], 0);
    for (uint32_t path = 20; path > 0; path--)
        posts_add(&many, path, 0);
    for (uint32_t i = 0; i < SPOOL_SAMPLE_POSTS; i++)
        CHECK_EQUAL(many.paths[i], i + 1);
}

int main(void)
{
    const char *problem = sampler_prepare(1000);
    sites_are_a_set();
    if (problem) { /* a machine without */
        printf("no samples here: %s\n", problem);
        return check_summary();
    }
    struct sampler *sampler = sampler_open((pid_t)syscall(SYS_gettid));
    CHECK(sampler != NULL);
    if (!sampler)
        return check_summary();
    a_thread_is_found_where_it_computes(sampler);
    who_sleeps_is_not_found(sampler);
    another_thread_is_found();
    a_child_has_none();
    sampler_close(sampler);
    sampler_end();
    return check_summary();
}
