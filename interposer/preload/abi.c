#include "abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *abi_of(void *mpi, const char *path, char *version, size_t version_bytes)
{
    enum { LIBRARY_VERSION_BYTES = 8192 + 1 }; /* MPI_MAX_LIBRARY_VERSION_STRING of every known MPI, and the MPI-5 ABI's */
    const char *file = strrchr(path, '/');
    if (dlsym(mpi, "ompi_mpi_comm_world"))
        return "openmpi";
    if (starts_with(file ? file + 1 : path, "libmpi_abi"))
        return "mpiabi";

    int (*get_version)(char *, int *) = (int (*)(char *, int *))dlsym(mpi, "PMPI_Get_library_version");
    static char text[LIBRARY_VERSION_BYTES];
    int length = 0;
    if (get_version)
        get_version(text, &length); /* allowed before MPI_Init */
    snprintf(version, version_bytes, "%.*s", (int)strcspn(text, "\n"), text);
    /* Cray: "MPI VERSION    : CRAY MPICH version 8.1.21"; ParaStation: "=== ParaStation MPI 5.7.1 ===", before MPICH's */
    if (starts_with(text, "MPICH") || starts_with(text, "Intel(R) MPI") || starts_with(text, "MVAPICH") ||
        strstr(text, "CRAY MPICH") || strstr(text, "ParaStation MPI"))
        return "mpich";
    return NULL;
}
