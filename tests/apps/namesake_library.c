/* Multiple-precision integers, say: nothing to do with MPI but the names. */
int mpi_init(int value)
{
    return value + 100;
}

int MPI_TEST(int value)
{
    return value * 2;
}

int answer(int value)
{
    return MPI_TEST(mpi_init(value));
}
