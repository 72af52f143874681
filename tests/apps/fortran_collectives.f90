! Collectives from Fortran, blocking and not, with MPI_IN_PLACE and a user's own reduction; neighbours; communicators, one of
! them made by a request; attributes with values of address size.
! Rows: those of the C calls of the same names; bytes are what the rank contributes.
#include "binding.h"
program collectives
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer, parameter :: COUNT = 5, RANKS = 3
    integer :: rank, ierror
    integer :: data(COUNT * RANKS), got(COUNT * RANKS)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call blocking()
    call in_place()
    call own_reduction()
    call nonblocking()
    call neighbors()
    call duplicates()
    if (rank == 0) print '(a)', 'collectives'
    call MPI_Finalize(ierror)

contains

#include "check_fortran.h"

    subroutine blocking()
        integer :: counts(RANKS), starts(RANKS)
        counts = (/1, 2, 3/)
        starts = (/0, 1, 3/)
        data = rank
        call MPI_Bcast(data, COUNT, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
        call check(data(1) == 1 .and. data(COUNT) == 1, __LINE__)
        data = rank
        call MPI_Gather(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
        if (rank == 1) call check(got(1) == 0 .and. got(COUNT * RANKS) == 2, __LINE__)
        call MPI_Gatherv(data, rank + 1, MPI_INTEGER, got, counts, starts, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
        if (rank == 1) call check(all(got(1:6) == (/0, 1, 1, 2, 2, 2/)), __LINE__)
        call MPI_Scatter(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
        call check(got(1) == 1, __LINE__)
        call MPI_Allgather(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call check(got(1) == 0 .and. got(COUNT * RANKS) == 2, __LINE__)
        call MPI_Alltoall(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call check(got(COUNT + 1) == 1, __LINE__)
        call MPI_Allreduce(data, got, COUNT, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call check(got(COUNT) == 3, __LINE__)
        call MPI_Scan(data, got, COUNT, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call check(got(1) == rank * (rank + 1) / 2, __LINE__)
    end subroutine

    ! With MPI_IN_PLACE, which is another address in Fortran than in C.
    subroutine in_place()
        data = rank
        call MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
        call check(data(1) == 2, __LINE__)
        data = rank
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, COUNT, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call check(data(1) == 0 .and. data(COUNT * RANKS) == 2, __LINE__)
        data = rank
        call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, COUNT, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call check(data(1) == 0 .and. data(COUNT * RANKS) == 2, __LINE__)
        data = rank
        if (rank == 1) then
            call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, data, COUNT, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
            call check(data(1) == 0 .and. data(COUNT * RANKS) == 2, __LINE__)
        else
            call MPI_Gather(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
        end if
    end subroutine

    subroutine own_reduction()
        OPERATION :: operation
        REQUEST :: request
        call MPI_Op_create(larger, .true., operation, ierror)
        data = rank * 10
        call MPI_Allreduce(data, got, COUNT, MPI_INTEGER, operation, MPI_COMM_WORLD, ierror)
        call check(got(1) == 20, __LINE__)
        call MPI_Ireduce(data, got, COUNT, MPI_INTEGER, operation, 0, MPI_COMM_WORLD, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
        if (rank == 0) call check(got(COUNT) == 20, __LINE__)
        call MPI_Op_free(operation, ierror)
    end subroutine

#ifdef USE_MPI_F08
    subroutine larger(in, inout, length, datatype)
        use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
        type(c_ptr), value :: in, inout
        integer :: length
        type(MPI_Datatype) :: datatype
        integer, pointer :: a(:), b(:)
        call c_f_pointer(in, a, (/length/))
        call c_f_pointer(inout, b, (/length/))
        b = max(a, b)
    end subroutine
#else
    subroutine larger(in, inout, length, datatype)
        integer :: length, datatype
        integer :: in(length), inout(length)
        inout = max(in, inout)
    end subroutine
#endif

    subroutine nonblocking()
        REQUEST :: requests(4)
        integer :: sum(COUNT), all_of(COUNT * RANKS), root(COUNT)
        data = rank
        root = rank
        call MPI_Ibcast(root, COUNT, MPI_INTEGER, 2, MPI_COMM_WORLD, requests(1), ierror)
        call MPI_Iallreduce(data, sum, COUNT, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2), ierror)
        call MPI_Iallgather(data, COUNT, MPI_INTEGER, all_of, COUNT, MPI_INTEGER, MPI_COMM_WORLD, requests(3), ierror)
        call MPI_Ibarrier(MPI_COMM_WORLD, requests(4), ierror)
        call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
        call check(root(1) == 2 .and. sum(COUNT) == 3 .and. all_of(COUNT + 1) == 1, __LINE__)
    end subroutine

    subroutine neighbors()
        COMM :: ring
        REQUEST :: request
        integer :: sizes(1)
        logical :: periodic(1)
        sizes = RANKS
        periodic = .true.
        call MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periodic, .false., ring, ierror)
        data = rank
        call MPI_Neighbor_allgather(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, ring, ierror)
        call check(got(1) == mod(rank + 2, 3) .and. got(COUNT + 1) == mod(rank + 1, 3), __LINE__)
        call MPI_Ineighbor_alltoall(data, COUNT, MPI_INTEGER, got, COUNT, MPI_INTEGER, ring, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
        call check(got(1) == mod(rank + 2, 3), __LINE__)
        call MPI_Comm_free(ring, ierror)
    end subroutine

    subroutine duplicates()
        COMM :: copy, half
        REQUEST :: request
        integer :: keyval
        integer(kind=MPI_ADDRESS_KIND) :: value, extra
        logical :: flag
        extra = 0
        call MPI_Comm_idup(MPI_COMM_WORLD, copy, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
        call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierror)
        value = 12345678901_MPI_ADDRESS_KIND
        call MPI_Comm_set_attr(copy, keyval, value, ierror)
        value = 0
        call MPI_Comm_get_attr(copy, keyval, value, flag, ierror)
        call check(flag .and. value == 12345678901_MPI_ADDRESS_KIND, __LINE__)
        call MPI_Comm_free_keyval(keyval, ierror)
        call MPI_Comm_split(copy, rank / 2, -rank, half, ierror)
        call MPI_Barrier(half, ierror)
        call MPI_Barrier(copy, ierror)
        call MPI_Comm_free(half, ierror)
        call MPI_Comm_free(copy, ierror)
    end subroutine
end program
