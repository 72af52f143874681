/*
 * Whoever cancels a thread means the application's own code: within ours it would leave locks behind, and requests that are posted
 * and that nobody knows. What of ours opens, writes, waits or unwinds, all of which are cancellation points, is between these two.
 */
#ifndef LAPSCOPE_UNCANCELLED_H
#define LAPSCOPE_UNCANCELLED_H

#include <pthread.h>

static inline int uncancelled_begin(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void uncancelled_end(int before)
{
    pthread_setcancelstate(before, &before);
}

#endif
