/* See large_count.h. */
#include <mpi.h>

#if MPI_VERSION >= 4
#define LARGE_COUNT
#include "wrap_post.c"

#include "wrap_block.c"

#include "wrap_collective.c"
#endif
