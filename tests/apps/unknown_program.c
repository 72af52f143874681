/*
 * A program linked with unknown_mpi.c. No rows: its calls pass through to that MPI.
 */
int MPI_Init(int *argc, char ***argv);
int MPI_Barrier(int comm);
int MPI_Finalize(void);

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int comm = 1; comm <= 3; comm++)
        MPI_Barrier(comm);
    MPI_Finalize();
    return 5;
}
