/* What every program here needs: CHECK, and buffers whose contents say where they came from. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MPICH before 4.1 gives wrong data in places where a program here says so. Intel's MPI, which says 3.4, does not. */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000 && !defined(I_MPI_VERSION)
#define MPICH_OF_4_0 1
#else
#define MPICH_OF_4_0 0
#endif

#define CHECK(condition) \
    do { \
        if (!(condition)) \
            check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

static inline void check_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

static inline int comm_rank(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

static inline int comm_size(MPI_Comm comm)
{
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

/* Starts MPI and returns this rank; the program must run on `ranks` of them. */
static inline int start(int *argc, char ***argv, int ranks)
{
    MPI_Init(argc, argv);
    CHECK(comm_size(MPI_COMM_WORLD) == ranks);
    return comm_rank(MPI_COMM_WORLD);
}

static inline void fill(void *buffer, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++)
        ((unsigned char *)buffer)[i] = (unsigned char)(seed * 31 + i);
}

static inline int holds(const void *buffer, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++)
        if (((const unsigned char *)buffer)[i] != (unsigned char)(seed * 31 + i))
            return 0;
    return 1;
}

static inline int count_bytes(const MPI_Status *status)
{
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    return bytes;
}

/* Whether a status says: this source, this tag, this many bytes. */
static inline int status_is(const MPI_Status *status, int source, int tag, int bytes)
{
    return status->MPI_SOURCE == source && status->MPI_TAG == tag && count_bytes(status) == bytes;
}

/* The empty status of MPI-4.1 3.7.3. */
static inline int status_is_empty(const MPI_Status *status)
{
    return status_is(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}

#endif
