/*
 * Derived datatypes with holes: a vector, a struct with padding, the same resized, and a receive of a vector into
 * contiguous memory.
 * Rows: bytes are count times the datatype's size (80, 27, 18), never its extent.
 */
#include "check.h"

#include <stddef.h>

enum { BLOCKS = 10, LENGTH = 2, STRIDE = 5, VECTOR = 1, STRUCT = 2, RESIZED = 3, PACKED = 4 };

struct pair {
    double value;
    char letter;
};

static MPI_Datatype pair_type(void)
{
    int lengths[] = {1, 1};
    MPI_Aint offsets[] = {offsetof(struct pair, value), offsetof(struct pair, letter)};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR}, type;
    MPI_Type_create_struct(2, lengths, offsets, types, &type);
    MPI_Type_commit(&type);
    return type;
}

static void send_all(MPI_Datatype vector, MPI_Datatype pair, MPI_Datatype resized)
{
    int grid[BLOCKS * STRIDE];
    struct pair pairs[3] = {{1.5, 'a'}, {2.5, 'b'}, {3.5, 'c'}};
    MPI_Request requests[4];
    for (int i = 0; i < BLOCKS * STRIDE; i++)
        grid[i] = i;
    MPI_Isend(grid, 1, vector, 1, VECTOR, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(pairs, 3, pair, 1, STRUCT, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(pairs, 2, resized, 1, RESIZED, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(grid, 1, vector, 1, PACKED, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void receive_all(MPI_Datatype vector, MPI_Datatype pair, MPI_Datatype resized)
{
    int grid[BLOCKS * STRIDE] = {0}, packed[BLOCKS * LENGTH], elements;
    struct pair pairs[3] = {{0}}, two[2] = {{0}};
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Irecv(grid, 1, vector, 0, VECTOR, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(pairs, 3, pair, 0, STRUCT, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(two, 2, resized, 0, RESIZED, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(packed, BLOCKS * LENGTH, MPI_INT, 0, PACKED, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    MPI_Get_count(&statuses[1], pair, &elements);
    CHECK(elements == 3);
    for (int i = 0; i < BLOCKS * STRIDE; i++)
        CHECK(grid[i] == (i % STRIDE < LENGTH ? i : 0));
    for (int i = 0; i < BLOCKS * LENGTH; i++)
        CHECK(packed[i] == i / LENGTH * STRIDE + i % LENGTH);
    CHECK(pairs[2].value == 3.5 && pairs[2].letter == 'c' && two[1].value == 2.5 && two[1].letter == 'b');
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    MPI_Datatype vector, pair = pair_type(), resized;
    MPI_Type_vector(BLOCKS, LENGTH, STRIDE, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_create_resized(pair, 0, sizeof(struct pair), &resized);
    MPI_Type_commit(&resized);
    if (rank == 0)
        send_all(vector, pair, resized);
    else
        receive_all(vector, pair, resized);
    MPI_Type_free(&resized);
    MPI_Type_free(&pair);
    MPI_Type_free(&vector);
    if (rank == 0)
        puts("holes stay holes");
    MPI_Finalize();
    return 0;
}
