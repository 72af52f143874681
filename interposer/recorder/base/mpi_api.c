#define _GNU_SOURCE
#include "mpi_api.h"

#include <dlfcn.h>
#include <stdio.h>

void *const *real_functions, *const *next_functions;
struct mpi_api mpi;
uint64_t known_types[KNOWN_TYPES];

/* wrap_fortran.c takes counts that Fortran passes for those of C. */
_Static_assert(sizeof(MPI_Fint) == sizeof(int), "Fortran's default integers are C's");

#ifdef OPEN_MPI
#define ABI "openmpi"

/* Predefined handles are addresses of objects: the executable's copy where it has one (a copy relocation), else the
 * library's own, which may have been loaded with local scope. */
static void *predefined(const struct lapscope_host *host, const char *symbol)
{
    void *object = dlsym(RTLD_DEFAULT, symbol);
    return object ? object : host->lookup(symbol);
}
#define PREDEFINED(type, constant, symbol) ((type)predefined(host, symbol))
#elif defined(MPI_ABI_VERSION)
#define ABI "mpiabi"
#define PREDEFINED(type, constant, symbol) (constant)
#else
#define ABI "mpich"
#define PREDEFINED(type, constant, symbol) (constant)
#endif

#ifdef OPEN_MPI
int mpi_op_is_predefined(MPI_Op operation)
{
    static const char *const names[] = {"max", "min", "sum", "prod", "land", "band", "lor", "bor", "lxor", "bxor", "maxloc",
                                        "minloc", "replace", "no_op"};
    char symbol[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(symbol, sizeof symbol, "ompi_mpi_op_%s", names[i]);
        void *known = dlsym(RTLD_DEFAULT, symbol);
        if ((void *)operation == (known ? known : mpi.lookup(symbol)))
            return 1;
    }
    return 0;
}
#elif defined(MPI_ABI_VERSION)
int mpi_op_is_predefined(MPI_Op operation)
{
    enum { LAST_PREDEFINED = 0xfff }; /* MPI-5.0 20.3: constants of handles are small numbers */
    return (uintptr_t)operation <= LAST_PREDEFINED;
}
#else
int mpi_op_is_predefined(MPI_Op operation)
{
    return (unsigned)operation >> 30 == 1; /* a built-in object */
}
#endif

const char *mpi_api_load(const struct lapscope_host *host)
{
    real_functions = host->real;
    next_functions = host->next;
#define NEED(name)                                                          \
    mpi.name = (__typeof__(mpi.name))host->lookup("PMPI_" #name);            \
    if (!mpi.name)                                                          \
        return "PMPI_" #name;
    MPI_NEEDS(NEED)
#undef NEED
#define CONVERT(name, type, symbol)                                         \
    mpi.name##_f2c = (type (*)(MPI_Fint))host->lookup(symbol);               \
    if (!mpi.name##_f2c)                                                    \
        return symbol;
    MPI_CONVERSIONS(CONVERT)
#undef CONVERT
    mpi.Group_from_session_pset =
        (int (*)(MPI_Session, const char *, MPI_Group *))host->lookup("PMPI_Group_from_session_pset");
    mpi.session_f2c = (MPI_Session (*)(MPI_Fint))host->lookup("PMPI_Session_f2c");
    if (!mpi.session_f2c)
        mpi.session_f2c = (MPI_Session (*)(MPI_Fint))host->lookup("PMPI_Session_fromint");
    mpi.Type_get_envelope_c = (__typeof__(mpi.Type_get_envelope_c))host->lookup("PMPI_Type_get_envelope_c");
    mpi.any_request_is_shared = host->lookup("I_MPI_Check_image_status") != NULL;
    mpi.abi = ABI;
    mpi.lookup = host->lookup;
    mpi.comm_world = PREDEFINED(MPI_Comm, MPI_COMM_WORLD, "ompi_mpi_comm_world");
    mpi.comm_self = PREDEFINED(MPI_Comm, MPI_COMM_SELF, "ompi_mpi_comm_self");
    mpi.comm_null = PREDEFINED(MPI_Comm, MPI_COMM_NULL, "ompi_mpi_comm_null");
    mpi.win_null = PREDEFINED(MPI_Win, MPI_WIN_NULL, "ompi_mpi_win_null");
    mpi.file_null = PREDEFINED(MPI_File, MPI_FILE_NULL, "ompi_mpi_file_null");
    mpi.group_null = PREDEFINED(MPI_Group, MPI_GROUP_NULL, "ompi_mpi_group_null");
    mpi.request_null = PREDEFINED(MPI_Request, MPI_REQUEST_NULL, "ompi_request_null");
    mpi.request_empty = PREDEFINED(MPI_Request, MPI_REQUEST_NULL, "ompi_request_empty");
    mpi.message_no_proc = PREDEFINED(MPI_Message, MPI_MESSAGE_NO_PROC, "ompi_message_no_proc");
    mpi.errors_return = PREDEFINED(MPI_Errhandler, MPI_ERRORS_RETURN, "ompi_mpi_errors_return");
    mpi.byte = PREDEFINED(MPI_Datatype, MPI_BYTE, "ompi_mpi_byte");
    mpi.datatype_null = PREDEFINED(MPI_Datatype, MPI_DATATYPE_NULL, "ompi_mpi_datatype_null");
    return NULL;
}

/* What is asked only of a datatype whose place is free: whether its size may be kept there. */
static void learn_type(uint64_t *place, MPI_Datatype type, MPI_Count size)
{
    int integers, addresses, types, combiner;
    uint64_t key = type_key(type);
    if (key >> 56 || mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return;
    int constant = combiner == MPI_COMBINER_NAMED && size < SIZE_VARIES;
    __atomic_store_n(place, key << 8 | (constant ? (uint64_t)size : SIZE_VARIES), __ATOMIC_RELAXED);
}

uint64_t bytes_of_slow(uint64_t count, MPI_Datatype type)
{
    uint64_t *place = &known_types[known_type_at(type)];
    MPI_Count size = 0;
    if (count == 0 || mpi.Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    if (!__atomic_load_n(place, __ATOMIC_RELAXED))
        learn_type(place, type, size);
    return count * (uint64_t)size;
}
