/* Stands for the static data of an MPI library, where its process manager's name for the world is found. */
static char memory[4096] = "kvs_%d_%d";

__attribute__((visibility("default"))) char *mpi_of_test_memory(void);

char *mpi_of_test_memory(void) /* an array would be copied into the program */
{
    return memory;
}
