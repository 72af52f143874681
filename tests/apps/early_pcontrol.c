/*
 * MPI_Pcontrol before MPI_Init: erroneous, but seen in the wild. Both MPIs end the program for it.
 * No rows: the program must end as it does without lapscope.
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Pcontrol(1);
    start(&argc, &argv, 1);
    puts("this MPI bears it");
    MPI_Finalize();
    return 0;
}
