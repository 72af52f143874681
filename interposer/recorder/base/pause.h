/* What is waited for in pauses is bounded by their number: a process that is stopped meanwhile goes on waiting, and signals shorten nothing. */
#ifndef LAPSCOPE_PAUSE_H
#define LAPSCOPE_PAUSE_H

#include <errno.h>
#include <time.h>

static inline void pause_1_ms(void)
{
    struct timespec left = {.tv_nsec = 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

#endif
