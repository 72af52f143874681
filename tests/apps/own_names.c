/*
 * Functions that are called as some of the C library's, and do something else: who means the C library's must not get
 * them. Prints which of them lapscope called: none.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200 };

static char called[1024];

static void note(const char *name, void *caller)
{
    Dl_info info;
    if (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "liblapscope") && !strstr(called, name))
        strcat(strcat(called, " "), name);
}

/* Each goes on to what others mean by it, whatever its arguments are. */
typedef long any_fn(long, long, long, long);

#define OWN(name)                                                                                                      \
    __attribute__((visibility("default"))) long own_##name(long a, long b, long c, long d) __asm__(#name);            \
    long own_##name(long a, long b, long c, long d)                                                                    \
    {                                                                                                                  \
        static any_fn *next;                                                                                           \
        note(#name, __builtin_return_address(0));                                                                      \
        if (!next)                                                                                                     \
            next = (any_fn *)dlsym(RTLD_NEXT, #name);                                                                  \
        return next(a, b, c, d);                                                                                       \
    }

OWN(link)
OWN(memmem)
OWN(lstat)
OWN(getrlimit)
OWN(readlink)
OWN(posix_fallocate)
OWN(pread)
OWN(mkdir)
OWN(rmdir)
OWN(rename)
OWN(unlink)
OWN(getppid)
OWN(setenv)
OWN(pthread_getattr_np)
OWN(qsort)
OWN(strtok_r)
OWN(getcwd)

int main(int argc, char **argv)
{
    int rank, ranks, token = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request requests[2];
        MPI_Irecv(&token, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    printf("lapscope called:%s\n", called);
    return 0;
}
