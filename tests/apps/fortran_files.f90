! Files from Fortran: names are strings, whose lengths the compiler passes behind the arguments.
! Rows: those of the C calls of the same names.
#include "binding.h"
program files
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer, parameter :: COUNT = 4, BYTES = 4 * COUNT
    integer :: rank, ierror, got
    integer :: data(COUNT), other(COUNT)
    integer(kind=MPI_OFFSET_KIND) :: at, size
    character(len=40) :: name
    FILE :: handle
    REQUEST :: request
    STATUS(status)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    name = 'data' ! with blanks behind it
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, handle, ierror)
    call check(ierror == MPI_SUCCESS, __LINE__)
    at = 0
    call MPI_File_set_view(handle, at, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierror)
    data = rank + 1
    at = rank * COUNT
    call MPI_File_write_at_all(handle, at, data, COUNT, MPI_INTEGER, status, ierror)
    call MPI_Get_count(status, MPI_INTEGER, got, ierror)
    call check(got == COUNT, __LINE__)
    call MPI_File_sync(handle, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    at = (1 - rank) * COUNT
    other = 0
    call MPI_File_iread_at(handle, at, other, COUNT, MPI_INTEGER, request, ierror)
    call MPI_Wait(request, status, ierror)
    call MPI_Get_count(status, MPI_INTEGER, got, ierror)
    call check(got == COUNT .and. all(other == 2 - rank), __LINE__)
    at = 2 * COUNT - 1
    call MPI_File_read_at(handle, at, other, COUNT, MPI_INTEGER, status, ierror)
    call MPI_Get_count(status, MPI_INTEGER, got, ierror)
    call check(got == 1 .and. other(1) == 2, __LINE__)
    at = 0
    call MPI_File_seek(handle, at, MPI_SEEK_SET, ierror)
    call MPI_File_read_all(handle, other, COUNT, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
    call check(all(other == 1), __LINE__)
    call MPI_File_get_size(handle, size, ierror)
    call check(size == 2 * BYTES, __LINE__)
    call MPI_File_close(handle, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) then
        call MPI_File_delete('data', MPI_INFO_NULL, ierror)
        print '(a)', 'files'
    end if
    call MPI_Finalize(ierror)

contains

#include "check_fortran.h"
end program
