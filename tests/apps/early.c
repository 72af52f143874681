/* A program whose library uses MPI before `main`. */
#include "check.h"

extern int early_sum;

int main(void)
{
    int is_up;
    MPI_Initialized(&is_up);
    printf("%d, %d\n", is_up, early_sum == comm_size(MPI_COMM_WORLD));
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
