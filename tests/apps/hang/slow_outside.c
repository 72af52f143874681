/* Programs that are slow and look, for a while, as if they hung in collectives or outside of MPI. They end. */
#include "hang.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* Rank 1 computes before it comes to the reduction. Three ranks. */
SITE void long_computation(void)
{
    here();
    if (rank == 1)
        computes(seconds);
    good_rounds(1);
}

/* Rank 0, the root of a broadcast, is late; then rank 1 before a gather. Three ranks. */
SITE void slow_roots(void)
{
    here();
    if (rank == 0)
        sleeps(seconds / 2);
    MPI_Bcast(to_others, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1)
        computes(seconds / 2);
    MPI_Gather(to_others, SMALL, MPI_BYTE, from_others, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* The root has left a broadcast that the others have yet to come to: it is two collectives ahead, in a reduction. Three ranks. */
SITE void root_is_ahead(void)
{
    here();
    if (rank == 2)
        sleeps(seconds);
    MPI_Bcast(to_others, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(to_others, SMALL, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Reduce(to_others, from_others, SMALL, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
}

/* Rank 2 is late to make a communicator. Three ranks. */
SITE void split_late(void)
{
    MPI_Comm part;
    here();
    if (rank == 2)
        computes(seconds);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &part);
    MPI_Comm_free(&part);
}

/* Rank 1 writes a file, synchronously, in small pieces. Three ranks. */
SITE void writes_a_file(void)
{
    here();
    if (rank == 1) {
        char name[] = "slow-XXXXXX";
        int file = mkstemp(name);
        CHECK(file >= 0 && unlink(name) == 0);
        for (int64_t end = now_ns() + (int64_t)(seconds * 1e9); now_ns() < end;)
            CHECK(write(file, to_others, 4096) == 4096 && fsync(file) == 0);
        close(file);
    }
    good_rounds(1);
}

/* Rank 1 waits for a child. Three ranks. */
SITE void waits_for_child(void)
{
    here();
    if (rank == 1) {
        pid_t child = fork();
        if (child == 0) {
            sleeps(seconds);
            _exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child);
    }
    good_rounds(1);
}

/* Rank 1 stops, and is continued by rank 0. Three ranks. */
SITE void pauses(void)
{
    long process = getpid();
    MPI_Bcast(&process, 1, MPI_LONG, 1, MPI_COMM_WORLD);
    here();
    if (rank == 1)
        raise(SIGSTOP);
    if (rank == 0) {
        sleeps(seconds);
        kill((pid_t)process, SIGCONT);
    }
    good_rounds(1);
}

SITE void *computes_aside(void *unused)
{
    computes(seconds);
    return unused;
}

/* A thread of rank 1 computes, for which its main thread waits. Three ranks. */
SITE void thread_is_busy(void)
{
    here();
    if (rank == 1) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, computes_aside, NULL) == 0);
        pthread_join(thread, NULL);
    }
    good_rounds(1);
}

SITE void *answers_late(void *waits)
{
    (*(void (**)(void))waits)();
    send_small(1, TAG, MPI_COMM_WORLD);
    return NULL;
}

/* Both ranks receive, but a second thread of rank 0 sends what rank 1 waits for. */
SITE void thread_answers(void (*waits)(void))
{
    pthread_t thread;
    here();
    if (rank == 0)
        CHECK(pthread_create(&thread, NULL, answers_late, &waits) == 0);
    receive_small(1 - rank, TAG, MPI_COMM_WORLD);
    if (rank == 0)
        pthread_join(thread, NULL);
    else
        send_small(0, TAG, MPI_COMM_WORLD);
}

SITE void sleeps_a_while(void)
{
    sleeps(seconds);
}

SITE void polls(void)
{
    poll(NULL, 0, (int)(seconds * 1000));
}

SITE void selects(void)
{
    struct timeval late = {.tv_sec = (time_t)seconds, .tv_usec = 500000};
    select(0, NULL, NULL, NULL, &late);
}

/* It does not say for how long. */
SITE void waits_for_event(void)
{
    struct itimerspec late = {.it_value = {.tv_sec = (time_t)seconds, .tv_nsec = 500000000}};
    int clock = timerfd_create(CLOCK_MONOTONIC, 0), events = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(timerfd_settime(clock, 0, &late, NULL) == 0 && epoll_ctl(events, EPOLL_CTL_ADD, clock, &event) == 0);
    CHECK(epoll_wait(events, &event, 1, -1) == 1);
    close(events);
    close(clock);
}

/* The thread sleeps first. */
SITE void thread_sends_late(void)
{
    thread_answers(sleeps_a_while);
}

/* It waits for events first, as threads of MPI libraries do. */
SITE void thread_polls_first(void)
{
    thread_answers(polls);
}

SITE void thread_selects_first(void)
{
    thread_answers(selects);
}

SITE void thread_waits_first(void)
{
    thread_answers(waits_for_event);
}

/* Rank 0 is in MPI_Finalize, as it has no more to do; ranks 1 and 2 still talk. Three ranks. */
SITE void finalizes_first(void)
{
    here();
    if (rank == 1) {
        sleeps(seconds);
        send_small(2, TAG, MPI_COMM_WORLD);
    }
    if (rank == 2)
        receive_small(1, TAG, MPI_COMM_WORLD);
}

/* Steps of which each takes a while on another rank. Three ranks. */
SITE void many_steps(void)
{
    enum { STEPS = 40 };
    here();
    for (int step = 0; step < STEPS; step++) {
        if (step % size == rank)
            computes(seconds / STEPS);
        good_rounds(1);
    }
}

static void (*waits_within)(void) = sleeps_a_while;

/* What MPI calls of the program's own, within a call of its. */
SITE void answers_within(void)
{
    waits_within();
    send_small(1, TAG, MPI_COMM_WORLD);
}

static int copies_late(MPI_Comm comm, int key, void *extra, void *from, void *to, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)from, (void)to;
    answers_within();
    *flag = 0;
    return MPI_SUCCESS;
}

static int deletes_late(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    answers_within();
    return MPI_SUCCESS;
}

/* Rank 0 copies an attribute while it makes a communicator. */
SITE void attribute_is_copied(void)
{
    MPI_Comm copy;
    int key;
    if (rank == 0) {
        MPI_Comm_create_keyval(copies_late, MPI_COMM_NULL_DELETE_FN, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    }
    here();
    if (rank == 1)
        receive_small(0, TAG, MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
}

/* Rank 0 deletes an attribute in MPI_Finalize. */
SITE void attribute_is_deleted(void)
{
    int key;
    if (rank == 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes_late, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    }
    here();
    if (rank == 1)
        receive_small(0, TAG, MPI_COMM_WORLD);
}

/* The same, but in a system call that MPI might sleep in itself. */
SITE void attribute_is_waited_for(void)
{
    waits_within = polls;
    attribute_is_copied();
}

SITE void finalize_waits_for_attribute(void)
{
    waits_within = polls;
    attribute_is_deleted();
}

static void handles_late(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    sleeps(seconds); /* MPICH lets no handler send */
}

/* Rank 0 handles an error of a send, before it makes another. */
SITE void error_is_handled(void)
{
    here();
    if (rank == 0) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(handles_late, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Ssend(to_others, -1, MPI_BYTE, 1, OTHER_TAG, MPI_COMM_WORLD);
        send_small(1, TAG, MPI_COMM_WORLD);
    }
    if (rank == 1)
        receive_small(0, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(long_computation), PROGRAM(slow_roots), PROGRAM(root_is_ahead),
        PROGRAM(split_late), PROGRAM(writes_a_file), PROGRAM(waits_for_child), PROGRAM(pauses), PROGRAM(thread_is_busy),
        PROGRAM(thread_sends_late), PROGRAM(thread_polls_first), PROGRAM(thread_selects_first), PROGRAM(thread_waits_first), PROGRAM(finalizes_first), PROGRAM(many_steps),
        PROGRAM(attribute_is_copied), PROGRAM(attribute_is_deleted), PROGRAM(error_is_handled),
        PROGRAM(attribute_is_waited_for), PROGRAM(finalize_waits_for_attribute)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_MULTIPLE, programs);
}
