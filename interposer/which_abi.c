/* Preprocessed, not compiled: which ABI an MPI's mpi.h speaks. See mpi_api.c. */
#include <mpi.h>
#if defined(OPEN_MPI)
ABI_IS openmpi
#elif defined(MPI_ABI_VERSION)
ABI_IS mpiabi
#elif defined(MPICH_VERSION) || defined(I_MPI_VERSION)
ABI_IS mpich
#endif
