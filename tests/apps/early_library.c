/* A library that brings MPI up before `main`, and down behind it. */
#include <mpi.h>
#include <stddef.h>

int early_sum;

__attribute__((constructor)) static void begin(void)
{
    int one = 1;
    MPI_Init(NULL, NULL);
    MPI_Allreduce(&one, &early_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((destructor)) static void end(void)
{
    MPI_Finalize();
}
