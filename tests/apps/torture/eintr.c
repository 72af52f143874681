/*
 * Blocking system calls while messages are pending: none of them is ever interrupted, as nothing in the program sends it a signal.
 * What they wait for comes from a second thread or is a timeout.
 */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

enum { STEPS = 20000, REPEAT = 4, SHORT_NS = 60000, ROUNDS = 100 };

static int to_other[2], to_main[2], poller, disturbed;
static sem_t never;

/* Sends back what it is sent, a little later, until there is nothing more. */
static void *echo(void *unused)
{
    char byte;
    ssize_t got;
    while ((got = read(to_other[0], &byte, 1)) == 1) {
        disturbed += is_disturbed(STEPS, 0, 0, 0);
        CHECK(write(to_main[1], &byte, 1) == 1);
    }
    CHECK(got == 0);
    return unused;
}

static void read_blocking(int round)
{
    char byte = (char)round, answer;
    CHECK(write(to_other[1], &byte, 1) == 1);
    CHECK(read(to_main[0], &answer, 1) == 1 && answer == byte);
}

static void wait_for_input(void)
{
    struct pollfd poll_for = {.fd = to_main[0], .events = POLLIN};
    struct timeval timeout = {.tv_usec = SHORT_NS / 1000};
    struct timespec precise = {.tv_nsec = SHORT_NS};
    struct epoll_event event;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(to_main[0], &set);
    CHECK(poll(&poll_for, 1, 1) == 0);
    CHECK(ppoll(&poll_for, 1, &precise, NULL) == 0);
    CHECK(select(to_main[0] + 1, &set, NULL, NULL, &timeout) == 0);
    CHECK(epoll_wait(poller, &event, 1, 1) == 0);
}

static void wait_for_time(void)
{
    struct timespec moment = {.tv_nsec = SHORT_NS}, rest, until;
    CHECK(nanosleep(&moment, &rest) == 0);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, &rest) == 0);
    CHECK(usleep(SHORT_NS / 1000) == 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SHORT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    CHECK(sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT);
}

static void work(int round)
{
    for (int i = 0; i < REPEAT; i++) {
        read_blocking(round);
        CHECK(arithmetic(STEPS) < 2.0);
        wait_for_input();
        CHECK(arithmetic(STEPS) < 2.0);
        wait_for_time();
    }
}

static void prepare(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(pipe(to_other) == 0 && pipe(to_main) == 0 && sem_init(&never, 0, 0) == 0);
    poller = epoll_create1(EPOLL_CLOEXEC);
    CHECK(poller >= 0 && epoll_ctl(poller, EPOLL_CTL_ADD, to_main[0], &event) == 0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    start_funneled(&argc, &argv);
    prepare();
    CHECK(pthread_create(&thread, NULL, echo, NULL) == 0);
    under_traffic(argc, argv, ROUNDS, work);
    close(to_other[1]);
    CHECK(pthread_join(thread, NULL) == 0 && disturbed == 0);
    if (traffic.rank == 0)
        puts("waited, never interrupted");
    MPI_Finalize();
    return 0;
}
