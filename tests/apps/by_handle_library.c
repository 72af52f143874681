/*
 * Another tool in LD_PRELOAD, one that does not use the PMPI names: it opens the MPI library and asks it for the function behind
 * its own of that name. Whoever answers with a wrapper sends it round in circles.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int seen;

typedef int isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static isend *real_isend(void)
{
    Dl_info info;
    void *library = dladdr((void *)PMPI_Init, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    isend *found = library ? (isend *)dlsym(library, "MPI_Isend") : NULL;
    if (!found)
        abort();
    return found;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    static isend *real;
    if (!real)
        real = real_isend();
    seen++;
    return real(buffer, count, type, dest, tag, comm, request);
}

__attribute__((destructor)) static void say(void)
{
    if (seen)
        printf("the other library saw %d sends\n", seen);
}
