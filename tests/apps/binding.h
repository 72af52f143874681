! What differs between `use mpi_f08`, `use mpi` and `include 'mpif.h'`, so that one source serves all three.
#ifdef USE_MPI_F08
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, n) type(MPI_Status) :: name(n)
#define SOURCE(status) status%MPI_SOURCE
#define TAG(status) status%MPI_TAG
#define SOURCE_AT(statuses, i) statuses(i)%MPI_SOURCE
#define TAG_AT(statuses, i) statuses(i)%MPI_TAG
#define STATUS_AT(statuses, i) statuses(i)
#define REQUEST type(MPI_Request)
#define COMM type(MPI_Comm)
#define WINDOW type(MPI_Win)
#define FILE type(MPI_File)
#define OPERATION type(MPI_Op)
#define DATATYPE type(MPI_Datatype)
#define MESSAGE type(MPI_Message)
#else
#ifdef USE_MPI_MODULE
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#endif
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES(name, n) integer :: name(MPI_STATUS_SIZE, n)
#define SOURCE(status) status(MPI_SOURCE)
#define TAG(status) status(MPI_TAG)
#define SOURCE_AT(statuses, i) statuses(MPI_SOURCE, i)
#define TAG_AT(statuses, i) statuses(MPI_TAG, i)
#define STATUS_AT(statuses, i) statuses(:, i)
#define REQUEST integer
#define COMM integer
#define WINDOW integer
#define FILE integer
#define OPERATION integer
#define DATATYPE integer
#define MESSAGE integer
#endif
