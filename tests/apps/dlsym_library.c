/* Another tool in LD_PRELOAD, one that answers dlsym() itself, as those do that limit what a program may take of a GPU. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

typedef void *dlsym_fn(void *, const char *);

static void answer(void)
{
}

void *dlsym(void *handle, const char *name)
{
    static dlsym_fn *next;
    if (!next)
        next = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!next)
        next = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    return strcmp(name, "what_the_tool_answers") == 0 ? (void *)answer : next(handle, name);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    static int has_said;
    if (!has_said && dlsym(RTLD_DEFAULT, "what_the_tool_answers") == (void *)answer)
        printf("the other library answered\n");
    has_said = 1;
    return PMPI_Comm_rank(comm, rank);
}
