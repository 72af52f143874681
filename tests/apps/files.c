/*
 * Every blocking way to read and write a file, on two ranks: what one way wrote another reads; and the calls that look
 * after files.
 * Rows: a call of kind io for each; bytes are what was in fact read or written: the last read asks for more than the file
 * has.
 */
#include "file.h"

enum { UNIT = 8, PART = 4 * UNIT, ALL = 2 * PART };

static int rank;
static char data[2 * ALL];

/* What was read is what rank `of` wrote as piece `piece`. */
static void check(const MPI_Status *status, int bytes, int of, int piece)
{
    CHECK(count_bytes(status) == bytes && holds(data, bytes, 10 * of + piece));
    memset(data, 0, sizeof data);
}

static char *piece(int number)
{
    fill(data, UNIT, 10 * rank + number);
    return data;
}

static void write_each_way(MPI_File file)
{
    MPI_Status status;
    MPI_Offset at = PART * rank;
    rewind_to(file, at);
    MPI_File_write(file, piece(0), UNIT, MPI_BYTE, &status);
    CHECK(count_bytes(&status) == UNIT);
    MPI_File_write_all(file, piece(1), UNIT / 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_at(file, at + 2 * UNIT, piece(2), UNIT, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, at + 3 * UNIT, piece(3), UNIT, MPI_BYTE, &status);
    CHECK(count_bytes(&status) == UNIT);
    MPI_File_sync(file);
}

static void read_each_way(MPI_File file)
{
    MPI_Status status;
    int other = 1 - rank;
    MPI_Offset at = PART * other;
    rewind_to(file, at + 2 * UNIT);
    MPI_File_read(file, data, UNIT, MPI_BYTE, &status);
    check(&status, UNIT, other, 2);
    MPI_File_read_all(file, data, UNIT, MPI_BYTE, &status);
    check(&status, UNIT, other, 3);
    MPI_File_read_at(file, at, data, UNIT, MPI_BYTE, &status);
    check(&status, UNIT, other, 0);
    MPI_File_read_at_all(file, at + UNIT, data, UNIT, MPI_BYTE, &status);
    check(&status, UNIT, other, 1);
    MPI_File_read_at(file, ALL - UNIT / 2, data, ALL, MPI_BYTE, &status);
    CHECK(count_bytes(&status) == UNIT / 2);
    MPI_File_read_at(file, ALL - UNIT, data, ALL, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(holds(data, UNIT, 13));
}

/* Behind a pointer that the ranks share. */
static void share(MPI_File file)
{
    MPI_Status status;
    MPI_Offset at;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, ALL, MPI_SEEK_SET);
    MPI_File_write_ordered(file, piece(4), UNIT, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_File_write_shared(file, piece(5), UNIT, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == ALL + 3 * UNIT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, ALL, MPI_SEEK_SET);
    MPI_File_read_ordered(file, data, UNIT, MPI_BYTE, &status);
    check(&status, UNIT, rank, 4);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_File_read_shared(file, data, UNIT, MPI_BYTE, &status);
        check(&status, UNIT, 0, 5);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void look_after(MPI_File file)
{
    MPI_Offset size;
    MPI_Info info;
    MPI_File_get_size(file, &size);
    CHECK(size == ALL + 3 * UNIT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(file, ALL);
    MPI_File_preallocate(file, ALL);
    MPI_File_set_atomicity(file, 1);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Info_create(&info);
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, 2);
    MPI_File file = open_file("data");
    write_each_way(file);
    read_each_way(file);
    share(file);
    look_after(file);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_File_delete("data", MPI_INFO_NULL);
        puts("written, read, shared");
    }
    MPI_Finalize();
    return 0;
}
