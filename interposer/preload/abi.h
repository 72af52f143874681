/* Which of the known MPI ABIs a loaded MPI library speaks. */
#ifndef LAPSCOPE_ABI_H
#define LAPSCOPE_ABI_H

#include <stddef.h>

/* "openmpi", "mpich", "mpiabi"; or NULL with the library's own words about itself in `version`. `mpi` is a handle of
 * dlopen. */
const char *abi_of(void *mpi, const char *path, char *version, size_t version_bytes) __attribute__((visibility("hidden")));

#endif
