/* Alarms of a thread's running time: they come, to that thread alone, and cut no system call short. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/inject/alarm.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { WANTED_RINGS = 20, SLEEPS = 40, SOON_NS = 200000 };

static struct alarm alarm_of_main;
static pthread_t main_thread;
static volatile sig_atomic_t rings, strangers, on_other_threads;
static volatile uint64_t work_done;

static void on_ring(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    rings++;
    strangers += !alarm_rang(&alarm_of_main, info);
    on_other_threads += !pthread_equal(pthread_self(), main_thread);
}

static void compute(void)
{
    for (int i = 0; i < 100000; i++)
        work_done += (uint64_t)i * work_done;
}

static void ring(int wanted)
{
    for (int i = 0; i < wanted; i++) {
        int before = rings;
        CHECK(alarm_set(&alarm_of_main, SOON_NS));
        for (int j = 0; j < 20000 && rings == before; j++)
            compute();
        CHECK_EQUAL(rings, before + 1); /* it rings once */
    }
}

static void *keep_computing(void *over)
{
    while (!__atomic_load_n((int *)over, __ATOMIC_ACQUIRE))
        compute();
    return NULL;
}

/* Alarms that are set and due are there when the thread sleeps. */
static void sleep_undisturbed(void)
{
    int cut_short = 0;
    for (int i = 0; i < SLEEPS; i++) {
        struct timespec moment = {0, 2000000};
        alarm_set(&alarm_of_main, 20000);
        if (i % 2)
            cut_short += nanosleep(&moment, NULL) != 0;
        else
            cut_short += poll(NULL, 0, 2) != 0;
    }
    CHECK_EQUAL(cut_short, 0);
}

static void test_clock(enum alarm_clock clock)
{
    const char *why = alarm_open(&alarm_of_main, clock, SIGURG);
    if (why) {
        printf("NOT TESTED, %s: %s\n", alarm_clock_name(clock), why);
        return;
    }
    CHECK_EQUAL(alarm_of_main.clock, clock);
    int over = 0;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, keep_computing, &over) == 0);
    ring(WANTED_RINGS);
    sleep_undisturbed();
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    CHECK_EQUAL(strangers, 0);
    CHECK_EQUAL(on_other_threads, 0);
    alarm_close(&alarm_of_main);
    CHECK(!alarm_set(&alarm_of_main, SOON_NS));
}

/* A program that closes file descriptors which are not its own. */
static void test_closed(void)
{
    if (alarm_open(&alarm_of_main, ALARM_PERF, SIGURG) != NULL)
        return;
    close(alarm_of_main.fd);
    errno = 77;
    CHECK(!alarm_set(&alarm_of_main, SOON_NS));
    CHECK_EQUAL(errno, 77);
    CHECK_EQUAL(dup2(STDOUT_FILENO, alarm_of_main.fd), alarm_of_main.fd); /* a file of the application's under that number */
    int fd = alarm_of_main.fd;
    alarm_close(&alarm_of_main);
    CHECK_EQUAL(close(fd), 0);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_ring, .sa_flags = SA_SIGINFO | SA_RESTART};
    main_thread = pthread_self();
    sigaction(SIGURG, &action, NULL);
    test_clock(ALARM_PERF);
    test_clock(ALARM_CPUTIME);
    test_closed();
    return check_summary();
}
