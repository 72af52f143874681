/* How wrappers of the C binding read their arguments: the words of calls.def that differ between languages. */
#ifndef LAPSCOPE_WRAP_C_H
#define LAPSCOPE_WRAP_C_H

#include "wrap.h"

#define FORTRAN 0
#define FIRST_INDEX 0
#define ADDRESS(request) NULL /* it comes by value: the application's variable is not known */
#define IN_PLACE(buffer) ((buffer) == MPI_IN_PLACE)
#define BUFFER(address, count, type) given_buffer(address, (uint64_t)(count), type)
#define BASE(buffer) (buffer)
#define TEXT_HASH(text) text_hash(text, (text) ? strlen(text) : 0)

/* A status to read also where the application wants none: only it tells what a receive got. */
static inline MPI_Status *wanted(MPI_Status *status, MPI_Status *own)
{
    return status == MPI_STATUS_IGNORE ? own : status;
}

static inline uint64_t typed_sum(const int counts[], const MPI_Datatype types[], uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++)
        total += data(counts[i], types[i]);
    return total;
}

static inline uint64_t typed_large_sum(const MPI_Count counts[], const MPI_Datatype types[], uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++)
        total += data(counts[i], types[i]);
    return total;
}

#define TYPED_SUM(counts, types, n) \
    _Generic((counts), const int *: typed_sum, const MPI_Count *: typed_large_sum)(counts, types, n)

#endif
