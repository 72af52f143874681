/*
 * MPI as the recorder reaches it: the real functions behind the wrappers, and the PMPI functions and predefined
 * objects that it uses itself, all looked up at run time (preload/host.h says why). One recorder is built against each
 * ABI's mpi.h, and serves newer and older MPIs of that ABI too: the types of functions come from calls.def, not from
 * mpi.h. This file and mpi_api.c are the only ones that know how the ABIs differ.
 */
#ifndef LAPSCOPE_MPI_API_H
#define LAPSCOPE_MPI_API_H

#include "../../preload/host.h"
#include "call.h"
#include "function.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What mpi.h of MPI-3 has not got, as the ABI will have it. */
#if MPI_VERSION < 4
#if defined(OPEN_MPI)
typedef struct ompi_instance_t *MPI_Session;
#else
typedef int MPI_Session;
#endif
#endif

#if defined(MPI_ABI_VERSION)
typedef int MPI_Fint; /* the ABI speaks of C alone; MPI_Abi_get_fortran_info would tell of other integers */
#endif

#include "prototypes.h"

#pragma GCC visibility push(hidden) /* on the declarations: no way round through a table of addresses */
extern void *const *real_functions, *const *next_functions;

/* What a wrapper calls: REAL(C_MPI_Isend), REAL(F08_MPI_Wait). */
#define REAL(function) ((function##_fn *)real_functions[FUNCTION_##function])

/* The next function in line, which is the same where there is no substitute for it. */
#define NEXT(function) ((function##_fn *)next_functions[FUNCTION_##function])

/* Functions of MPI that the recorder calls for itself. */
#define MPI_NEEDS(NEED)                \
    NEED(Cancel)                       \
    NEED(Cartdim_get)                  \
    NEED(Comm_dup)                     \
    NEED(Comm_free)                    \
    NEED(Comm_get_attr)                \
    NEED(Comm_get_name)                \
    NEED(Comm_get_parent)              \
    NEED(Comm_group)                   \
    NEED(Comm_rank)                    \
    NEED(Comm_remote_group)            \
    NEED(Comm_remote_size)             \
    NEED(Comm_set_errhandler)          \
    NEED(Comm_size)                    \
    NEED(Comm_test_inter)              \
    NEED(Dist_graph_neighbors_count)   \
    NEED(Error_class)                  \
    NEED(File_get_group)               \
    NEED(Get_count)                    \
    NEED(Get_elements_x)               \
    NEED(Get_library_version)          \
    NEED(Get_version)                  \
    NEED(Graph_neighbors_count)        \
    NEED(Group_free)                   \
    NEED(Group_rank)                   \
    NEED(Group_size)                   \
    NEED(Group_translate_ranks)        \
    NEED(Initialized)                  \
    NEED(Irecv)                        \
    NEED(Isend)                        \
    NEED(Pack)                         \
    NEED(Pack_size)                    \
    NEED(Query_thread)                 \
    NEED(Request_free)                 \
    NEED(Request_get_status)           \
    NEED(Test)                         \
    NEED(Test_cancelled)               \
    NEED(Topo_test)                    \
    NEED(Type_free)                    \
    NEED(Type_get_contents)            \
    NEED(Type_get_envelope)            \
    NEED(Type_get_extent_x)            \
    NEED(Type_get_true_extent_x)       \
    NEED(Type_size_x)                  \
    NEED(Unpack)                       \
    NEED(Wait)                         \
    NEED(Win_get_group)

/* How Fortran's integers become handles: functions in some ABIs, nothing to be done in others. */
#if defined(OPEN_MPI)
#define MPI_CONVERSIONS(CONVERT) \
    CONVERT(comm, MPI_Comm, "PMPI_Comm_f2c") CONVERT(type, MPI_Datatype, "PMPI_Type_f2c") \
    CONVERT(op, MPI_Op, "PMPI_Op_f2c") CONVERT(win, MPI_Win, "PMPI_Win_f2c") CONVERT(file, MPI_File, "PMPI_File_f2c") \
    CONVERT(request, MPI_Request, "PMPI_Request_f2c") CONVERT(message, MPI_Message, "PMPI_Message_f2c")
#elif defined(MPI_ABI_VERSION)
#define MPI_CONVERSIONS(CONVERT) \
    CONVERT(comm, MPI_Comm, "PMPI_Comm_fromint") CONVERT(type, MPI_Datatype, "PMPI_Type_fromint") \
    CONVERT(op, MPI_Op, "PMPI_Op_fromint") CONVERT(win, MPI_Win, "PMPI_Win_fromint") \
    CONVERT(file, MPI_File, "PMPI_File_fromint") CONVERT(request, MPI_Request, "PMPI_Request_fromint") \
    CONVERT(message, MPI_Message, "PMPI_Message_fromint")
#else
#define MPI_CONVERSIONS(CONVERT) CONVERT(file, MPI_File, "PMPI_File_f2c")
#endif

struct mpi_api {
#define NEED(name) __typeof__(&PMPI_##name) name;
    MPI_NEEDS(NEED)
#undef NEED
#define CONVERT(name, type, symbol) type (*name##_f2c)(MPI_Fint);
    MPI_CONVERSIONS(CONVERT)
#undef CONVERT
    /* NULL before MPI-4 */
    int (*Group_from_session_pset)(MPI_Session session, const char *name, MPI_Group *group);
    MPI_Session (*session_f2c)(MPI_Fint);
    int (*Type_get_envelope_c)(MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *large_counts,
                               MPI_Count *types, int *combiner);
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Win win_null;
    MPI_File file_null;
    MPI_Group group_null;
    MPI_Request request_null;
    MPI_Request request_empty;        /* Open MPI: what it returns for every send that was done within the call */
    MPI_Message message_no_proc;
    MPI_Datatype byte, datatype_null;
    MPI_Errhandler errors_return;
    int any_request_is_shared;        /* Intel MPI: all with MPI_PROC_NULL have handles like those of any other */
    const char *abi;                  /* openmpi, mpich, mpiabi */
    void *(*lookup)(const char *symbol);
};

extern struct mpi_api mpi;

/* Fills `mpi` and `real_functions`; returns the name of what is missing, or NULL. */
const char *mpi_api_load(const struct lapscope_host *host);

#define CONVERT(name, type, symbol)                \
    static inline type name##_f2c(MPI_Fint handle) \
    {                                              \
        return mpi.name##_f2c(handle);             \
    }
MPI_CONVERSIONS(CONVERT)
#undef CONVERT
#if defined(OPEN_MPI) || defined(MPI_ABI_VERSION)
static inline MPI_Session session_f2c(MPI_Fint handle)
{
    return mpi.session_f2c(handle);
}
#else
static inline MPI_Session session_f2c(MPI_Fint handle)
{
    return (MPI_Session)handle;
}
static inline MPI_Comm comm_f2c(MPI_Fint handle)
{
    return (MPI_Comm)handle;
}
static inline MPI_Datatype type_f2c(MPI_Fint handle)
{
    return (MPI_Datatype)handle;
}
static inline MPI_Op op_f2c(MPI_Fint handle)
{
    return (MPI_Op)handle;
}
static inline MPI_Win win_f2c(MPI_Fint handle)
{
    return (MPI_Win)handle;
}
static inline MPI_Request request_f2c(MPI_Fint handle)
{
    return (MPI_Request)handle;
}
static inline MPI_Message message_f2c(MPI_Fint handle)
{
    return (MPI_Message)handle;
}
#endif

/* Handles are integers in some ABIs and pointers in others; in all of them those of different kinds differ. */
#define DEFINE_KEY(name, type)                        \
    static inline uint64_t name##_key(type handle)    \
    {                                                 \
        uint64_t key = 0;                             \
        memcpy(&key, &handle, sizeof handle);         \
        return key;                                   \
    }                                                 \
    static inline type name##_of_key(uint64_t key)    \
    {                                                 \
        type handle;                                  \
        memcpy(&handle, &key, sizeof handle);         \
        return handle;                                \
    }
DEFINE_KEY(comm, MPI_Comm)
DEFINE_KEY(win, MPI_Win)
DEFINE_KEY(file, MPI_File)
DEFINE_KEY(request, MPI_Request)
DEFINE_KEY(message, MPI_Message)
DEFINE_KEY(type, MPI_Datatype)
#undef DEFINE_KEY

/* Whether several live requests may have this handle: the constant, already complete ones that MPIs return for what was
 * done within the call. Any other handle that is live is not given out again. */
static inline int mpi_request_is_shared(MPI_Request handle)
{
#if defined(OPEN_MPI)
    return handle == mpi.request_empty;
#elif defined(MPI_ABI_VERSION)
    (void)handle;
    return 1; /* not known: never take one for stale */
#else
    return (unsigned)handle >> 30 == 1 || mpi.any_request_is_shared; /* MPICH family: a built-in object */
#endif
}

/* Whether it is one of MPI's own: which run no code of the application's. */
int mpi_op_is_predefined(MPI_Op operation);

/* Whether the status of an MPI_Isendrecv tells what it received. That of MPICH (seen: 4.0, 5.0) and of Intel MPI is
 * that of some request within it. */
static inline int isendrecv_has_status(void)
{
#if defined(OPEN_MPI)
    return 1;
#else
    return 0;
#endif
}

/* Sizes of MPI's own datatypes, which never change: a handle above the lowest byte, its size in that. A handle that the
 * application made, and may free and be given again, has SIZE_VARIES there. */
enum { KNOWN_TYPES = 64, SIZE_VARIES = 255 };
extern uint64_t known_types[KNOWN_TYPES];

static inline unsigned known_type_at(MPI_Datatype type)
{
    return (unsigned)((type_key(type) * 0x9e3779b97f4a7c15u) >> 58);
}

uint64_t bytes_of_slow(uint64_t count, MPI_Datatype type);

/* count elements of a datatype in bytes of data (MPI-4.1 5.1.5: the size, not the extent). */
static inline uint64_t bytes_of(uint64_t count, MPI_Datatype type)
{
    uint64_t known = __atomic_load_n(&known_types[known_type_at(type)], __ATOMIC_RELAXED), size = known & 255;
    if (__builtin_expect(known >> 8 == type_key(type) && size != SIZE_VARIES, 1))
        return count * size;
    return bytes_of_slow(count, type);
}

/* Bytes that a status says have come or gone. */
static inline uint64_t bytes_received(const MPI_Status *status)
{
    int bytes = 0;
    if (mpi.Get_count(status, mpi.byte, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED)
        return (uint64_t)bytes;
    MPI_Count large = 0; /* 2 GiB and more */
    return mpi.Get_elements_x(status, mpi.byte, &large) == MPI_SUCCESS && large > 0 ? (uint64_t)large : 0;
}

/* Whether bytes_received would say so; quicker where the ABI lays down in which fields of a status they are. */
static inline int status_has_bytes(const MPI_Status *status, uint64_t bytes)
{
#if defined(OPEN_MPI)
    return status->_ucount == bytes;
#elif defined(MPI_ABI_VERSION)
    return bytes_received(status) == bytes;
#else
    return ((uint64_t)(unsigned)status->count_hi_and_cancelled >> 1 << 32 | (unsigned)status->count_lo) == bytes;
#endif
}

#pragma GCC visibility pop

#endif
