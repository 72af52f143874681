#include "unknown_mpi.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int MPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 7;
}

int PMPI_Init(int *argc, char ***argv)
{
    return MPI_Init(argc, argv);
}

int PMPI_Get_library_version(char *text, int *length)
{
    const char *as = getenv("TEST_MPI_VERSION"); /* what it is to be taken for */
    strcpy(text, as ? as : "An MPI of the tests");
    *length = (int)strlen(text);
    return 0;
}

long MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 1000 * (errno == 42);
}

double MPI_Scan(double a, float b, double c, double d, double e, double f, double g, double h, double i, int n)
{
    return a + 2 * (double)b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + n;
}

void mpi_barrier__(int *value)
{
    ++*value;
}

struct wide MPI_Exscan(struct wide in, int n)
{
    for (int i = 0; i < 4; i++)
        in.values[i] *= n;
    return in;
}

int MPI_Pcontrol(int level, ...)
{
    va_list more;
    va_start(more, level);
    double weight = va_arg(more, double);
    int count = va_arg(more, int);
    va_end(more);
    return level + (int)(10 * weight) + count;
}
