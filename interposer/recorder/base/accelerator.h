/* Accelerators: whether their driver is in the process, and what memory is theirs. Nothing is loaded that is not there. */
#ifndef LAPSCOPE_ACCELERATOR_H
#define LAPSCOPE_ACCELERATOR_H

/* The driver's library, as "libcuda"; NULL: none is there. Costs a look at the loader's count of libraries, while that stays. */
const char *accelerator_library(void);

/* Whether an address may be memory that only an accelerator and its driver may touch, or that moves when it is touched. */
int accelerator_holds(const void *address);

#endif
