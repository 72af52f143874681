/* Memory of the recorder's own, never given back: the application's malloc is not touched. Zeroed. NULL when there is
 * none. Callable from any thread. */
#ifndef LAPSCOPE_ARENA_H
#define LAPSCOPE_ARENA_H

#include <stddef.h>

void *arena_alloc(size_t bytes);

#endif
