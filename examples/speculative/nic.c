/* See nic.h. */
#define _GNU_SOURCE
#include "nic.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "processor.h"

#include "../common/measure.h"

enum { PIECE = 65536 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct transfer *first_posted, **last_posted = &first_posted;

static struct transfer *next_transfer(void)
{
    pthread_mutex_lock(&lock);
    while (!first_posted)
        pthread_cond_wait(&posted, &lock);
    struct transfer *next = first_posted;
    first_posted = next->next;
    if (!first_posted)
        last_posted = &first_posted;
    pthread_mutex_unlock(&lock);
    return next;
}

static void sleep_until(double us)
{
    struct timespec until = {(time_t)(us / 1e6), 0};
    until.tv_nsec = (long)((us - (double)until.tv_sec * 1e6) * 1e3);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void copy_piece(const struct transfer *t, size_t from, size_t bytes)
{
    struct iovec here = {t->here + from, bytes}, there = {(void *)(uintptr_t)(t->there + from), bytes};
    ssize_t copied = t->direction == RDMA_READ ? process_vm_readv(other, &here, 1, &there, 1, 0)
                                               : process_vm_writev(other, &here, 1, &there, 1, 0);
    if (copied < 0 && errno == ESRCH)
        for (;;)
            pause(); /* the other process is no more, and this one ends as soon as it notices */
    if (copied != (ssize_t)bytes)
        fail("%s of %zu bytes: %s", t->direction == RDMA_READ ? "process_vm_readv" : "process_vm_writev", bytes,
             copied < 0 ? strerror(errno) : "not all were copied");
}

/*
 * Each piece is copied at the moment when the link would have carried its last byte. These moments are fixed at the
 * beginning: one who wakes up late does not slow down the link. Data that are written take a latency to the other end, and data
 * that are read two: the request goes there first. Returns when the link was free again.
 */
static double move(const struct transfer *t, double free_us)
{
    double trips = t->direction == RDMA_READ ? 2 : 1;
    double begin = t->posted_us + trips * the_link.latency_us;
    if (begin < free_us)
        begin = free_us;
    for (size_t from = 0; from < t->bytes; from += PIECE) {
        size_t bytes = t->bytes - from < PIECE ? t->bytes - from : PIECE;
        sleep_until(begin + (double)(from + bytes) / the_link.bytes_per_us);
        copy_piece(t, from, bytes);
    }
    return begin + (double)t->bytes / the_link.bytes_per_us;
}

static void *run_engine(void *nothing)
{
    double free_us = 0;
    watch_this_thread();
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;;) {
        struct transfer *t = next_transfer();
        free_us = move(t, free_us);
        if (t->tells)
            send_message_from_nic(&t->tell);
        atomic_store_explicit(&t->is_done, 1, memory_order_release);
    }
    return nothing;
}

void start_nic(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_engine, NULL);
    if (error)
        fail("no thread that moves data: %s", strerror(error));
    pthread_detach(thread);
}

void post_transfer(struct transfer *transfer)
{
    transfer->posted_us = now_us();
    transfer->next = NULL;
    atomic_store(&transfer->is_done, 0);
    pthread_mutex_lock(&lock);
    *last_posted = transfer;
    last_posted = &transfer->next;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
}
