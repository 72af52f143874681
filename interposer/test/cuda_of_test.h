#ifndef LAPSCOPE_CUDA_OF_TEST_H
#define LAPSCOPE_CUDA_OF_TEST_H

#include <stdint.h>

/* What the stand-in for CUDA's driver has: a symbol of that name, in its library. */
struct cuda_of_test {
    uintptr_t begin, bytes;
    int is_managed, is_not_initialized;
    int has_current_context, has_primary_context;
    unsigned asked;
};

#endif
