/*
 * What an MPI that is built for device memory does: it opens that while it works, in calls that end with their work done, and from
 * the first request on until all are complete. And it asks the driver whenever it makes progress, where it can be told to (Open MPI).
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

/* The driver comes when MPI is up. */
static void open_device(const void *address, int is_open)
{
    void (*gpu_open)(const void *, int) = (void (*)(const void *, int))dlsym(RTLD_DEFAULT, "gpu_open");
    if (gpu_open)
        gpu_open(address, is_open);
}

static int ask_driver(void)
{
    static int (*ask)(void *, int, unsigned long long);
    int type;
    if (!ask)
        ask = (int (*)(void *, int, unsigned long long))dlsym(RTLD_DEFAULT, "cuPointerGetAttribute");
    if (ask)
        ask(&type, 2, 0);
    return 0;
}

int MPI_Init(int *argc, char ***argv)
{
    int error = PMPI_Init(argc, argv);
    int (*register_progress)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(RTLD_DEFAULT, "opal_progress_register");
    if (register_progress)
        register_progress(ask_driver);
    return error;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    open_device(NULL, 1);
    int error = PMPI_Send(buffer, count, type, to, tag, comm);
    open_device(NULL, 0);
    return error;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    open_device(NULL, 1);
    int error = PMPI_Recv(buffer, count, type, from, tag, comm, status);
    open_device(NULL, 0);
    return error;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    open_device(NULL, 1);
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    open_device(NULL, 1);
    return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
}

int MPI_Ialltoallv(const void *sends, const int counts[], const int places[], MPI_Datatype type, void *receives, const int receive_counts[],
                   const int receive_places[], MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request)
{
    open_device(NULL, 1);
    return PMPI_Ialltoallv(sends, counts, places, type, receives, receive_counts, receive_places, receive_type, comm, request);
}

int MPI_Rget(void *buffer, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count, MPI_Datatype target_type,
             MPI_Win window, MPI_Request *request)
{
    open_device(NULL, 1);
    return PMPI_Rget(buffer, count, type, target, displacement, target_count, target_type, window, request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
    open_device(NULL, 1);
    return PMPI_Startall(count, requests);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int error = PMPI_Waitall(count, requests, statuses);
    open_device(NULL, 0);
    return error;
}
