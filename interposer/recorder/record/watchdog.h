/* LAPSCOPE_WATCHDOG: a thread that says when this rank hangs, and what to type. It changes nothing else. */
#ifndef LAPSCOPE_WATCHDOG_H
#define LAPSCOPE_WATCHDOG_H

#include <stdint.h>

struct watchdog_post {
    const char *run;         /* the run directory, absolute */
    int rank;
    const char *host;
    uint64_t limit_ns;       /* without a call that ended */
};

/* Returns 0, or an errno value when there is no thread to be had. */
int watchdog_start(const struct watchdog_post *post);

/* From here on nothing of the spool is looked at. Does not wait for the thread, which may be writing to a full pipe. */
void watchdog_end(void);

#endif
