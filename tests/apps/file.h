/* A file of the tests: it lies in the working directory, which is new for each run. */
#ifndef FILE_H
#define FILE_H

#include "check.h"

static inline MPI_File open_file(const char *name)
{
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    return file;
}

/* Sets both ranks' individual file pointers. */
static inline void rewind_to(MPI_File file, MPI_Offset at)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, at, MPI_SEEK_SET);
}

#endif
