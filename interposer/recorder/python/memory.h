/* How an interpreter's memory is read: the recorder's interpreter is in its own process. `lapscope hang` compiles what knows how
 * interpreters are built again, with PYTHON_ELSEWHERE, to read those of other processes: crates/watch/src/stacks/python. */
#ifndef LAPSCOPE_PYTHON_MEMORY_H
#define LAPSCOPE_PYTHON_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef PYTHON_ELSEWHERE

#define PYTHON_OF_ITS_READER _Thread_local /* several processes may be read at once */

/* Copies what is mapped. Returns how many bytes from the first on. */
size_t python_memory_copy(void *to, uintptr_t from, size_t bytes);

/* A copy, until it is called again; zeros where nothing is mapped. */
const void *python_memory_at(uintptr_t from, size_t bytes);

#else

#include "../base/own_memory.h"

#define PYTHON_OF_ITS_READER

static inline size_t python_memory_copy(void *to, uintptr_t from, size_t bytes)
{
    return own_memory_read(to, from, bytes);
}

static inline const void *python_memory_at(uintptr_t from, size_t bytes)
{
    (void)bytes;
    return (const void *)from;
}

#endif
#endif
