/* Watchpoints: what hits, by which function, how often; and that nothing of them is left. Where none can be had, that is
 * said in words. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/base/clock.h"
#include "../recorder/reach/watchpoint.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t words[64] __attribute__((aligned(64)));
static volatile char bytes[64] __attribute__((aligned(64)));

__attribute__((noinline)) static void write_word(int at)
{
    words[at] = 1;
    __asm__ volatile("nop");
}

__attribute__((noinline)) static uint64_t read_word(int at)
{
    uint64_t value = words[at];
    __asm__ volatile("nop");
    return value;
}

static unsigned count_hits(struct watchpoint *point)
{
    struct watchpoint_hit hit;
    unsigned hits = 0;
    while (watchpoint_next(point, &hit))
        hits++;
    return hits;
}

static int is_in(uintptr_t address, void *function)
{
    return address > (uintptr_t)function && address <= (uintptr_t)function + 64;
}

static void sees_writes_and_who_made_them(struct watchpoint *point)
{
    struct watchpoint_hit hit = {0};
    uint64_t before = clock_nanoseconds(CLOCK_MONOTONIC);
    CHECK(watchpoint_set(point, WATCH_WRITES, (void *)&words[3], 8, 8));
    read_word(3);
    write_word(2);
    write_word(4);
    CHECK(!watchpoint_was_hit(point));
    write_word(3);
    CHECK(watchpoint_was_hit(point));
    CHECK(watchpoint_next(point, &hit));
    CHECK(is_in(hit.address, (void *)write_word));
    CHECK(hit.ns >= before && hit.ns <= clock_nanoseconds(CLOCK_MONOTONIC));
    CHECK(!watchpoint_next(point, &hit));
    CHECK_EQUAL(point->seen, 1);
}

static void hits_once_only(void)
{
    struct watchpoint point;
    CHECK_EQUAL(watchpoint_open(&point, 1), 0);
    for (int i = 0; i < 5; i++) {
        struct watchpoint_hit hit = {0};
        CHECK(watchpoint_set(&point, WATCH_ANY, (void *)&words[5 + i], 8, 1));
        read_word(5 + i);
        write_word(5 + i);
        read_word(5 + i);
        CHECK(watchpoint_next(&point, &hit));
        CHECK(is_in(hit.address, (void *)read_word));
        CHECK(!watchpoint_next(&point, &hit));
    }
    watchpoint_close(&point);
}

/* The kernel adds up what is left of one time and the next. */
static void hits_as_often_as_asked_for(struct watchpoint *point)
{
    for (unsigned round = 0; round < 20; round++) {
        unsigned wanted = 1 + round % 8, made = round * 7 % 11;
        CHECK(watchpoint_set(point, WATCH_WRITES, (void *)&words[round], 8, wanted));
        unsigned most = point->left;
        CHECK(most >= wanted);
        for (unsigned i = 0; i < made; i++)
            write_word((int)round);
        CHECK_EQUAL(count_hits(point), made < most ? made : most);
    }
    watchpoint_clear(point);
    for (unsigned i = 0; i < 100; i++)
        write_word((int)i % 64);
    CHECK(!watchpoint_was_hit(point));
    CHECK_EQUAL(count_hits(point), 0);
}

static void watches_single_bytes(struct watchpoint *point)
{
    for (unsigned width = 1; width <= 8; width *= 2) {
        CHECK(watchpoint_set(point, WATCH_WRITES, (void *)(bytes + 16), width, 64));
        for (unsigned i = 0; i < 64; i++)
            bytes[i] = 1;
        unsigned hits = count_hits(point);
        CHECK(hits == width || (hits > 0 && hits < width)); /* fewer where the loop writes several at a time */
        watchpoint_clear(point);
    }
}

/* All that a thread may have, at once; one more is refused in words. */
static void says_when_there_is_none(struct watchpoint *first)
{
    struct watchpoint more[64];
    int count = 0, error = 0;
    while (count < 64 && (error = watchpoint_open(&more[count], 1)) == 0)
        count++;
    CHECK(count >= 1 && count < 64);
    CHECK(strstr(watchpoint_problem(error), "debugger") != NULL);
    CHECK(watchpoint_set(&more[count - 1], WATCH_ANY, (void *)&words[9], 8, 1));
    CHECK(watchpoint_set(first, WATCH_ANY, (void *)&words[10], 8, 1));
    write_word(9);
    write_word(10);
    CHECK_EQUAL(count_hits(&more[count - 1]), 1);
    CHECK_EQUAL(count_hits(first), 1);
    for (int i = 0; i < count; i++)
        watchpoint_close(&more[i]);
    CHECK_EQUAL(watchpoint_open(&more[0], 1), 0);
    watchpoint_close(&more[0]);
}

static void *write_elsewhere(void *none)
{
    write_word(12);
    return none;
}

static void sees_its_own_thread_alone(struct watchpoint *point)
{
    pthread_t other;
    CHECK(watchpoint_set(point, WATCH_ANY, (void *)&words[12], 8, 8));
    CHECK_EQUAL(pthread_create(&other, NULL, write_elsewhere, NULL), 0);
    pthread_join(other, NULL);
    CHECK_EQUAL(count_hits(point), 0);
    write_word(12);
    CHECK_EQUAL(count_hits(point), 1);
}

/* A child inherits the descriptor and nothing else. */
static void a_child_is_not_watched(struct watchpoint *point)
{
    int status = -1;
    CHECK(watchpoint_set(point, WATCH_ANY, (void *)&words[13], 8, 8));
    pid_t child = fork();
    if (child == 0) {
        write_word(13);
        int fd = point->ring.fd;
        watchpoint_forget(point);
        _exit(syscall(SYS_fcntl, fd, 1 /* F_GETFD */) == -1 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(count_hits(point), 0);
    write_word(13);
    CHECK_EQUAL(count_hits(point), 1);
}

/* The program has closed all descriptors, and opened a file of its own under the number. */
static void leaves_what_is_not_its_own(void)
{
    struct watchpoint point;
    CHECK_EQUAL(watchpoint_open(&point, 8), 0);
    int file = dup(1);
    CHECK_EQUAL(dup2(file, point.ring.fd), point.ring.fd);
    CHECK(!watchpoint_set(&point, WATCH_ANY, (void *)&words[14], 8, 8));
    int fd = point.ring.fd;
    watchpoint_close(&point);
    CHECK_EQUAL(dup2(fd, fd), fd); /* still open */
    close(fd);
    close(file);
}

static void no_descriptor_is_said(void)
{
    struct rlimit limit, none;
    struct watchpoint point;
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    int error = watchpoint_open(&point, 8);
    CHECK(error != 0 && strstr(watchpoint_problem(error), "ulimit -n") != NULL);
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int main(void)
{
    struct watchpoint point;
    int error = watchpoint_open(&point, HITS_MOST);
    if (error) { /* a machine without: then only the words can be looked at */
        CHECK(strlen(watchpoint_problem(error)) > 0);
        printf("no watchpoints here: %s\n", watchpoint_problem(error));
        return check_summary();
    }
    sees_writes_and_who_made_them(&point);
    hits_once_only();
    hits_as_often_as_asked_for(&point);
    watches_single_bytes(&point);
    says_when_there_is_none(&point);
    sees_its_own_thread_alone(&point);
    a_child_is_not_watched(&point);
    watchpoint_close(&point);
    leaves_what_is_not_its_own();
    no_descriptor_is_said();
    return check_summary();
}
