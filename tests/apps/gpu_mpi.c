/* What an MPI that is built for device memory does: it opens that while it works, in calls that end with their work done. */
#include <dlfcn.h>
#include <mpi.h>

/* The driver comes when MPI is up. */
static void open_device(const void *address, int is_open)
{
    int (*gpu_open)(const void *, int) = (int (*)(const void *, int))dlsym(RTLD_DEFAULT, "gpu_open");
    if (gpu_open)
        gpu_open(address, is_open);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    open_device(buffer, 1);
    int error = PMPI_Send(buffer, count, type, to, tag, comm);
    open_device(buffer, 0);
    return error;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    open_device(buffer, 1);
    int error = PMPI_Recv(buffer, count, type, from, tag, comm, status);
    open_device(buffer, 0);
    return error;
}
