/*
 * Loads the library that its argument names (namesake_library.c), which has functions of its own under names that some
 * Fortran compilers would give to MPI's, and calls them while MPI is up.
 */
#include "check.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    const char *library = argc > 1 ? argv[1] : "";
    int rank = start(&argc, &argv, 1);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*answer)(int) = handle ? (int (*)(int))dlsym(handle, "answer") : NULL;
    CHECK(answer != NULL);
    for (int i = 0; i < 3; i++)
        printf("%d: %d\n", rank, answer ? answer(i) : -1);
    MPI_Finalize();
    return 0;
}
