#ifndef LAPSCOPE_CUDA_OF_TEST_H
#define LAPSCOPE_CUDA_OF_TEST_H

#include <stdint.h>

/* What the stand-in for CUDA's driver has: a symbol of that name, in its library. */
struct cuda_of_test {
    uintptr_t begin, bytes;
    int is_managed;
    int has_no_device, count_error; /* what cuDeviceGetCount says, and returns */
    int has_current_context, has_primary_context;
    unsigned asked, looked; /* of an address; for contexts */
};

#endif
