! Windows from Fortran: displacements of address size, requests, locks, attributes.
! Rows: those of the C calls of the same names.
#include "binding.h"
program windows
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer, parameter :: COUNT = 6
    integer, save :: memory(COUNT), data(COUNT)
    integer :: rank, peer, unit, ierror
    integer(kind=MPI_ADDRESS_KIND) :: size, displacement, value
    logical :: flag
    WINDOW :: window
    REQUEST :: request

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    peer = 1 - rank
    unit = 4
    size = 4 * COUNT
    memory = 0
    data = rank + 10
    call MPI_Win_create(memory, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierror)
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag, ierror)
    call check(flag .and. value == size, __LINE__)

    call MPI_Win_fence(0, window, ierror)
    displacement = 2
    call MPI_Put(data, 3, MPI_INTEGER, peer, displacement, 3, MPI_INTEGER, window, ierror)
    call MPI_Win_fence(0, window, ierror)
    call check(all(memory(3:5) == peer + 10) .and. memory(1) == 0 .and. memory(6) == 0, __LINE__)
    displacement = 4
    call MPI_Get(data, 2, MPI_INTEGER, peer, displacement, 2, MPI_INTEGER, window, ierror)
    call MPI_Win_fence(0, window, ierror)
    call check(data(1) == rank + 10 .and. data(2) == 0, __LINE__)
    data = 1
    displacement = 0
    call MPI_Accumulate(data, COUNT, MPI_INTEGER, peer, displacement, COUNT, MPI_INTEGER, MPI_SUM, window, ierror)
    call MPI_Win_fence(0, window, ierror)
    call check(memory(3) == peer + 11 .and. memory(6) == 1, __LINE__)

    call MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window, ierror)
    data = 50
    call MPI_Rput(data, 1, MPI_INTEGER, peer, displacement, 1, MPI_INTEGER, window, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call MPI_Win_flush(peer, window, ierror)
    data = 0
    call MPI_Rget(data, 1, MPI_INTEGER, peer, displacement, 1, MPI_INTEGER, window, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(data(1) == 50, __LINE__)
    call MPI_Win_unlock(peer, window, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_Win_free(window, ierror)
    if (rank == 0) print '(a)', 'windows'
    call MPI_Finalize(ierror)

contains

#include "check_fortran.h"
end program
