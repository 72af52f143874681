#define _GNU_SOURCE
#include "mpi_api.h"

#include <dlfcn.h>
#include <stddef.h>

void *real_calls[CALL_COUNT] __attribute__((visibility("hidden")));
struct mpi_api mpi __attribute__((visibility("hidden")));

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

const char *mpi_api_load(const struct lapscope_host *host)
{
    memcpy(real_calls, host->real, sizeof real_calls);
#define NEED(name)                                                          \
    mpi.name = (__typeof__(mpi.name))host->lookup("PMPI_" #name);            \
    if (!mpi.name)                                                          \
        return "PMPI_" #name;
    MPI_NEEDS(NEED)
#undef NEED
    mpi.abi = ABI;
    mpi.lookup = host->lookup;
    mpi.comm_world = PREDEFINED(MPI_Comm, MPI_COMM_WORLD, "ompi_mpi_comm_world");
    mpi.comm_self = PREDEFINED(MPI_Comm, MPI_COMM_SELF, "ompi_mpi_comm_self");
    mpi.comm_null = PREDEFINED(MPI_Comm, MPI_COMM_NULL, "ompi_mpi_comm_null");
    mpi.request_null = PREDEFINED(MPI_Request, MPI_REQUEST_NULL, "ompi_request_null");
    mpi.request_empty = PREDEFINED(MPI_Request, MPI_REQUEST_NULL, "ompi_request_empty");
    mpi.byte = PREDEFINED(MPI_Datatype, MPI_BYTE, "ompi_mpi_byte");
    return NULL;
}
