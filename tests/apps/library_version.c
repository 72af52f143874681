/* Prints what MPI says of itself, without MPI_Init. */
#include <mpi.h>
#include <stdio.h>

int main(void)
{
    static char text[8192 + 1];
    int length;
    MPI_Get_library_version(text, &length);
    puts(text);
    return 0;
}
