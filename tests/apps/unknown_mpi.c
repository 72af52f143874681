/*
 * An MPI that nobody knows: a handful of functions and a version string of its own.
 */
#include <stdio.h>
#include <string.h>

#define BOTH(name, parameters, body) \
    int P##name parameters body \
    int name parameters body

BOTH(MPI_Get_library_version, (char *version, int *length), {
    strcpy(version, "Frobnicate MPI 1.0\nsecond line");
    *length = (int)strlen(version);
    return 0;
})

BOTH(MPI_Init, (int *argc, char ***argv), {
    (void)argc;
    (void)argv;
    puts("unknown MPI starts");
    return 0;
})

BOTH(MPI_Barrier, (int comm), {
    printf("barrier on %d\n", comm);
    return 0;
})

BOTH(MPI_Finalize, (void), {
    puts("unknown MPI ends");
    return 0;
})
