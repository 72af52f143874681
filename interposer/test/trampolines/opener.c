/* opener dlopen|dlmopen LIBRARY: a program without MPI, which opens a library that has one before anything else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    void *library = strcmp(argv[1], "dlopen") ? dlmopen(LM_ID_BASE, argv[2], RTLD_NOW) : dlopen(argv[2], RTLD_NOW);
    int (*has_too_much)(void) = library ? (int (*)(void))dlsym(library, "has_too_much") : NULL;
    if (!has_too_much)
        fprintf(stderr, "%s\n", dlerror());
    return !has_too_much || has_too_much();
}
