#ifndef LAPSCOPE_CUPTI_OF_TEST_H
#define LAPSCOPE_CUPTI_OF_TEST_H

#include "../gpu/cupti.h"

/* What the stand-in for CUPTI does and has seen: a symbol of that name, in its library. CUPTI_OF_TEST_REFUSES: the error that it gives
 * when it is to record a kind; CUPTI_OF_TEST_IS_TAKEN: when its callbacks are registered. */
struct cupti_of_test {
    unsigned enabled;                /* a bit for each kind */
    int hangs, is_in_flush;          /* as CUPTI where CUDA is held by who waits for us */
    int flush_error, keeps_buffer, was_forced;
    void (*hold)(size_t record_count); /* takes a buffer for so many, which a forced flush gives back on a thread of CUPTI's, slowly */
    size_t dropped;                  /* without a buffer */
    size_t record_count;             /* of which the next flush gives back */
    struct cupti_record records[8];
};

#endif
