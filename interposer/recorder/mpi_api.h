/*
 * MPI as the recorder reaches it: the real functions behind the wrappers, and the PMPI functions and predefined
 * objects that it uses itself, all looked up at run time (preload/host.h says why). One recorder is built against each
 * ABI's mpi.h; this file and mpi_api.c are the only ones that know how the ABIs differ.
 */
#ifndef LAPSCOPE_MPI_API_H
#define LAPSCOPE_MPI_API_H

#include "../preload/host.h"
#include "call.h"

#include <mpi.h>
#include <stdint.h>
#include <string.h>

extern void *real_calls[CALL_COUNT];

/* The next MPI_X in line. The address is only used for its type. */
#define REAL(name) REAL_(name)
#define REAL_(name) ((__typeof__(&(name)))real_calls[CALL_##name])

/* Functions of MPI that the recorder calls for itself; MPI_T ones may be missing. */
#define MPI_NEEDS(NEED)        \
    NEED(Comm_group)           \
    NEED(Comm_rank)            \
    NEED(Comm_remote_group)    \
    NEED(Comm_size)            \
    NEED(Comm_test_inter)      \
    NEED(Get_count)            \
    NEED(Get_elements_x)       \
    NEED(Get_library_version)  \
    NEED(Get_version)          \
    NEED(Group_free)           \
    NEED(Group_size)           \
    NEED(Group_translate_ranks) \
    NEED(Query_thread)         \
    NEED(Test_cancelled)       \
    NEED(Type_size_x)

struct mpi_api {
#define NEED(name) __typeof__(&PMPI_##name) name;
    MPI_NEEDS(NEED)
#undef NEED
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Request request_null;
    MPI_Request request_empty;        /* Open MPI: what it returns for every send that was done within the call */
    MPI_Datatype byte;
    const char *abi;                  /* openmpi, mpich, mpiabi */
    void *(*lookup)(const char *symbol);
};

extern struct mpi_api mpi;

/* Fills `mpi` and `real_calls`; returns the name of what is missing, or NULL. */
const char *mpi_api_load(const struct lapscope_host *host);

/* Handles are integers in some ABIs and pointers in others. */
#define DEFINE_KEY(name, type)                        \
    static inline uint64_t name##_key(type handle)    \
    {                                                 \
        uint64_t key = 0;                             \
        memcpy(&key, &handle, sizeof handle);         \
        return key;                                   \
    }
DEFINE_KEY(comm, MPI_Comm)
DEFINE_KEY(request, MPI_Request)
#undef DEFINE_KEY

/* Whether several live requests may have this handle: the constant, already complete ones that MPIs return for what was
 * done within the call. Any other handle that is live is not given out again. */
static inline int request_is_shared(MPI_Request handle)
{
#if defined(OPEN_MPI)
    return handle == mpi.request_empty;
#elif defined(MPI_ABI_VERSION)
    (void)handle;
    return 1; /* not known: never take one for stale */
#else
    return (unsigned)handle >> 30 == 1; /* MPICH family: a built-in object */
#endif
}

/* count elements of a datatype in bytes of data (MPI-4.1 5.1.5: the size, not the extent). */
static inline uint64_t bytes_of(uint64_t count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (count == 0 || mpi.Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    return count * (uint64_t)size;
}

/* Bytes that a receive's status says have come. */
static inline uint64_t bytes_received(const MPI_Status *status)
{
    int bytes = 0;
    if (mpi.Get_count(status, mpi.byte, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED)
        return (uint64_t)bytes;
    MPI_Count large = 0; /* 2 GiB and more */
    return mpi.Get_elements_x(status, mpi.byte, &large) == MPI_SUCCESS && large > 0 ? (uint64_t)large : 0;
}

#endif
