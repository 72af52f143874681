/* Looks which manglings of a Fortran function the process has, as bindings do that are made at run time: before and after
 * it loads the MPI's library for Fortran, where there is one. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#if defined OPEN_MPI && OMPI_MAJOR_VERSION == 4
#define FORTRAN_LIBRARY "libmpi_mpifh.so.40"
#elif defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000
#define FORTRAN_LIBRARY "libmpichfort.so.12"
#else
#define FORTRAN_LIBRARY NULL
#endif

static void look(void)
{
    static const char *const names[] = {"mpi_barrier", "mpi_barrier_", "mpi_barrier__", "MPI_BARRIER", "mpi_isend_f08_"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        dlerror();
        int found = dlsym(RTLD_DEFAULT, names[i]) != NULL;
        const char *error = dlerror();
        printf("%s %d %d\n", names[i], found, error && strstr(error, names[i]));
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    look();
    int world = MPI_Comm_c2f(MPI_COMM_WORLD), error = -1;
    if (FORTRAN_LIBRARY && dlopen(FORTRAN_LIBRARY, RTLD_NOW | RTLD_GLOBAL)) {
        look();
        void (*barrier)(int *, int *);
        *(void **)&barrier = dlsym(RTLD_DEFAULT, "mpi_barrier_");
        if (barrier)
            barrier(&world, &error);
    }
    printf("%d\n", error);
    MPI_Finalize();
    return 0;
}
