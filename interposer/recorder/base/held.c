#define _GNU_SOURCE
#include "held.h"

#include "uncancelled.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static const int ours[] = {SIGPIPE, SIGXFSZ};

void held_begin(struct held *held)
{
    sigset_t signals;
    held->cancel_state = uncancelled_begin();
    sigemptyset(&signals);
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
        sigaddset(&signals, ours[i]);
    sigpending(&held->pending);
    pthread_sigmask(SIG_BLOCK, &signals, &held->before);
}

void held_end(const struct held *held)
{
    int saved_errno = errno;
    sigset_t now;
    sigpending(&now);
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, ours[i]);
        if (sigismember(&now, ours[i]) && !sigismember(&held->pending, ours[i]))
            sigtimedwait(&one, NULL, &(struct timespec){0, 0});
    }
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    uncancelled_end(held->cancel_state);
    errno = saved_errno;
}
