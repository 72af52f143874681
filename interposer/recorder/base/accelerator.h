/* Accelerators: whether their driver is in the process, and what memory is theirs. Nothing is loaded that is not there. */
#ifndef LAPSCOPE_ACCELERATOR_H
#define LAPSCOPE_ACCELERATOR_H

#include "../../../schema/spool.h"

#include <stdint.h>

/* The driver's library, as "libcuda"; NULL: none is there. Costs a look at the loader's count of libraries, while that stays. */
const char *accelerator_library(void);

/* The same for those who may be within the loader: where another thread looks, what was known before. */
const char *accelerator_seen(void);

/* Whether what was seen is CUDA's driver, and no other. */
int accelerator_is_cuda(void);

/* Where the memory of an address lies, as its driver says now. `end` is exclusive: all up to there is of that kind. */
struct accelerator_memory {
    enum spool_data_memory kind;
    uintptr_t begin, end;
};
struct accelerator_memory accelerator_memory_at(const void *address);

/* The same without asking HIP, which a question starts, and whose error is then what the program is told next: unknown where that may
 * know the address. */
struct accelerator_memory accelerator_memory_quietly(const void *address);

/* Whether some of so many bytes may be memory that only an accelerator and its driver may touch, or that moves when it is touched. Who
 * wants to touch memory asks this each time: what was freed may be another's now. */
int accelerator_holds(const void *begin, uint64_t bytes);

#endif
