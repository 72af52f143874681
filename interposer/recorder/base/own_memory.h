/* Memory of this process that may not be mapped, or not be the stack's that one takes it for: the kernel copies it, and says no
 * where an access would crash. */
#ifndef LAPSCOPE_OWN_MEMORY_H
#define LAPSCOPE_OWN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Copies what is mapped of at most 4096 bytes. Returns how many bytes from the first on; 0 with errno where there is none, EPERM or
 * ENOSYS where the system does not copy for us. Keeps nothing open, sets no signal. */
size_t own_memory_read(void *to, uintptr_t from, size_t bytes);

#endif
