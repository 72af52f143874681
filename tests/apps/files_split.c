/*
 * The split collectives of files, which have no requests: begun and ended, on two ranks.
 * Rows: a call of kind io for each half; the first with the bytes asked for, the second with those that were in fact read or
 * written.
 */
#include "file.h"

enum { UNIT = 12, PIECES = 3 };

static int rank;
static char out[PIECES][UNIT], in[PIECES][UNIT];

static void write_each_way(MPI_File file)
{
    MPI_Offset at = PIECES * UNIT * rank;
    MPI_Status status;
    for (int i = 0; i < PIECES; i++)
        fill(out[i], UNIT, 10 * rank + i);
    rewind_to(file, at);
    MPI_File_write_all_begin(file, out[0], UNIT, MPI_BYTE);
    MPI_File_write_all_end(file, out[0], &status);
    CHECK(count_bytes(&status) == UNIT);
    MPI_File_write_at_all_begin(file, at + UNIT, out[1], UNIT, MPI_BYTE);
    MPI_File_write_at_all_end(file, out[1], MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 2 * PIECES * UNIT, MPI_SEEK_SET);
    MPI_File_write_ordered_begin(file, out[2], UNIT, MPI_BYTE);
    MPI_File_write_ordered_end(file, out[2], &status);
    CHECK(count_bytes(&status) == UNIT);
}

static void read_each_way(MPI_File file)
{
    MPI_Offset at = PIECES * UNIT * rank;
    MPI_Status status;
    rewind_to(file, at);
    MPI_File_read_all_begin(file, in[0], UNIT, MPI_BYTE);
    MPI_File_read_all_end(file, in[0], &status);
    CHECK(count_bytes(&status) == UNIT);
    MPI_File_read_at_all_begin(file, at + UNIT, in[1], UNIT, MPI_BYTE);
    MPI_File_read_at_all_end(file, in[1], MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 2 * PIECES * UNIT, MPI_SEEK_SET);
    MPI_File_read_ordered_begin(file, in[2], UNIT, MPI_BYTE);
    MPI_File_read_ordered_end(file, in[2], &status);
    CHECK(count_bytes(&status) == UNIT);
    CHECK(memcmp(in, out, sizeof in) == 0);
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, 2);
    MPI_File file = open_file("data");
    write_each_way(file);
    read_each_way(file);
    MPI_File_close(&file);
    if (rank == 0)
        puts("begun and ended");
    MPI_Finalize();
    return 0;
}
