/* Signals that a write of ours may raise, kept from the application: they are for its own writes. */
#ifndef LAPSCOPE_HELD_H
#define LAPSCOPE_HELD_H

#include <signal.h>

struct held {
    sigset_t before, pending;
    int cancel_state;
};

/* From here to held_end() this thread is not cancelled, and gets no SIGPIPE (a closed pipe) and no SIGXFSZ (the limit on the size of files):
 * both come to the thread that writes. The writes still fail. */
void held_begin(struct held *held);
void held_end(const struct held *held);

#endif
