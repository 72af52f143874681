/* What kind of memory a buffer lies in: whether the program's own accesses are all there are. */
#ifndef LAPSCOPE_MEMORY_H
#define LAPSCOPE_MEMORY_H

#include <stdint.h>

enum memory_kind {
    MEMORY_OWN,     /* this process's alone */
    MEMORY_SHARED,  /* other processes may touch it */
    MEMORY_OTHER    /* not mapped, not to be read, or of a device */
};

/* Of all of [address, address + bytes), as the kernel says (proc_pid_maps(5)), who is asked once for each buffer; and the driver of an
 * accelerator, which is asked each time. */
enum memory_kind memory_of(uintptr_t address, uint64_t bytes);

/* Reads words of this process at addresses that need not be mapped; returns how many could be read, from the first on. */
unsigned memory_read(const uintptr_t *addresses, uint64_t *words, unsigned count);

/* Reads a page of 4096 bytes; 0 when it is not mapped. */
int memory_read_page(uintptr_t page, uint64_t words[512]);

#endif
