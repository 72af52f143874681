/* An MPI library that says that it is Open MPI, and fails in one way or another when it is looked at. */
#include <stdio.h>
#include <string.h>

int ompi_mpi_comm_world;

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}

int MPI_Finalize(void)
{
    return 0;
}

int MPI_Barrier(void *comm)
{
    (void)comm;
    return 0;
}

__attribute__((unused)) static void crash(void)
{
    *(volatile int *)0 = 0;
}

__attribute__((constructor)) static void loaded(void)
{
#ifdef CRASHES_LOADED
    crash();
#endif
}

int PMPI_Get_library_version(char *text, int *length)
{
#ifdef CRASHES_ASKED
    crash();
#endif
#ifdef TALKS
    printf("lapscope-mpi-answer nonsense\nand no end of line");
#endif
    strcpy(text, "Open MPI v4.1.99, package: tests");
    *length = (int)strlen(text);
    return 0;
}

int MPI_T_init_thread(int required, int *provided)
{
    (void)required;
#ifdef CRASHES_LISTING
    crash();
#endif
    *provided = 0;
    return 1;
}
