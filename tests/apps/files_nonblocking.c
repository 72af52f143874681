/*
 * Every non-blocking way to read and write a file, on two ranks.
 * Rows: a request of kind io for each, with the bytes that were in fact read or written: the last read asks for more than
 * the file has.
 */
#include "file.h"

enum { UNIT = 8, PIECES = 5, PART = PIECES * UNIT, ALL = 2 * PART };

static int rank;
static char pieces[PIECES][UNIT];

static void fill_pieces(void)
{
    for (int i = 0; i < PIECES; i++)
        fill(pieces[i], UNIT, 10 * rank + i);
}

static void write_each_way(MPI_File file)
{
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Offset at = PART * rank;
    fill_pieces();
    rewind_to(file, at);
    MPI_File_iwrite(file, pieces[0], UNIT, MPI_BYTE, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_File_iwrite_all(file, pieces[1], UNIT, MPI_BYTE, &requests[0]);
    MPI_File_iwrite_at(file, at + 2 * UNIT, pieces[2], UNIT, MPI_BYTE, &requests[1]);
    MPI_File_iwrite_at_all(file, at + 3 * UNIT, pieces[3], UNIT, MPI_BYTE, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    CHECK(count_bytes(&statuses[0]) == UNIT && count_bytes(&statuses[2]) == UNIT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, ALL, MPI_SEEK_SET);
    if (rank == 0) {
        MPI_File_iwrite_shared(file, pieces[4], UNIT, MPI_BYTE, &requests[0]);
        MPI_Wait(&requests[0], &statuses[0]);
        CHECK(count_bytes(&statuses[0]) == UNIT);
    }
    MPI_File_sync(file);
}

static void check(int piece, int of, const MPI_Status *status)
{
    CHECK(holds(pieces[piece], UNIT, 10 * of + piece) && count_bytes(status) == UNIT);
}

static void read_each_way(MPI_File file)
{
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int other = 1 - rank, flag = 0;
    MPI_Offset at = PART * other;
    memset(pieces, 0, sizeof pieces);
    rewind_to(file, at);
    MPI_File_iread(file, pieces[0], UNIT, MPI_BYTE, &requests[0]);
    while (!flag)
        MPI_Test(&requests[0], &flag, &statuses[0]);
    check(0, other, &statuses[0]);
    MPI_File_iread_all(file, pieces[1], UNIT, MPI_BYTE, &requests[0]);
    MPI_File_iread_at(file, at + 2 * UNIT, pieces[2], UNIT, MPI_BYTE, &requests[1]);
    MPI_File_iread_at_all(file, at + 3 * UNIT, pieces[3], UNIT, MPI_BYTE, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    for (int i = 0; i < 3; i++)
        check(i + 1, other, &statuses[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, ALL, MPI_SEEK_SET);
    if (rank == 1) {
        MPI_File_iread_shared(file, pieces[4], UNIT, MPI_BYTE, &requests[0]);
        MPI_Wait(&requests[0], &statuses[0]);
        check(4, 0, &statuses[0]);
    }
}

#ifndef OPEN_MPI /* which never comes back from a read that meets the end of the file */
static void read_beyond(MPI_File file)
{
    char data[ALL];
    MPI_Request request;
    MPI_Status status;
    MPI_File_iread_at(file, ALL + UNIT / 2, data, ALL, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    CHECK(count_bytes(&status) == UNIT / 2);
}
#endif

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, 2);
    MPI_File file = open_file("data");
    write_each_way(file);
    read_each_way(file);
#ifndef OPEN_MPI
    read_beyond(file);
#endif
    MPI_File_close(&file);
    if (rank == 0)
        puts("written and read meanwhile");
    MPI_Finalize();
    return 0;
}
