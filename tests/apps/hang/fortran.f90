! Programs in Fortran that hang, and slow ones, by each binding. As hang.h: the first argument chooses one; `here RANK` on
! standard error says where it begins; a slow one ends and prints its name.
#include "../binding.h"
#ifdef USE_MPI_F08
#define IERROR
#else
#define IERROR , ierror
#endif
program hangs
    USE_MPI
    use, intrinsic :: iso_fortran_env, only: error_unit, real64
    implicit none
    INCLUDE_MPI
    integer, parameter :: COUNT = 1000000, SMALL = 8
    integer, save :: out(COUNT), in(COUNT)
    integer :: rank, size, ierror
    character(len=40) :: name

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
    call get_command_argument(1, name)
    call good_rounds()
    write (error_unit, '(a, i0)') 'here ', rank
    flush (error_unit)
    select case (name)
    case ('sends_first')
        call sends_first()
    case ('wrong_tag')
        call wrong_tag()
    case ('leaves_early')
        call leaves_early()
    case ('reduce_and_bcast')
        call reduce_and_bcast()
    case ('waitall_wrong_tag')
        call waitall_wrong_tag()
    case ('computes_on')
        call computes_on()
    case ('late_sender')
        call late_sender()
    case ('slow_reduction')
        call slow_reduction()
    case default
        call MPI_Abort(MPI_COMM_WORLD, 99, ierror)
    end select
    if (rank == 0) print '(a)', trim(name)
    call MPI_Finalize(ierror)

contains

    subroutine good_rounds()
        integer :: round
        do round = 1, 3
            call MPI_Sendrecv(out, SMALL, MPI_INTEGER, mod(rank + 1, size), 7, in, SMALL, MPI_INTEGER, &
                              mod(rank + size - 1, size), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
            call reduces()
        end do
    end subroutine

    subroutine reduces()
        integer :: one, total
        one = 1
        call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
    end subroutine

    ! On a processor for this long, outside of MPI; for ever where it is negative.
    subroutine computes(seconds)
        real(real64), intent(in) :: seconds
        real(real64), volatile :: x
        real(real64) :: begin
        begin = clock()
        x = 0.3
        do while (seconds < 0 .or. clock() - begin < seconds)
            x = 3.7 * x * (1 - x)
        end do
    end subroutine

    real(real64) function clock()
        integer(8) :: ticks, rate
        call system_clock(ticks, rate)
        clock = real(ticks, real64) / real(rate, real64)
    end function

    ! The second argument.
    real(real64) function seconds()
        character(len=20) :: text
        seconds = 2.5
        call get_command_argument(2, text)
        if (len_trim(text) > 0) read (text, *) seconds
    end function

    ! Both send what is too large to be kept, and would receive afterwards.
    subroutine sends_first()
        call MPI_Send(out, COUNT, MPI_INTEGER, 1 - rank, 7, MPI_COMM_WORLD, ierror)
        call MPI_Recv(in, COUNT, MPI_INTEGER, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    end subroutine

    ! Rank 0 sends with tag 17 and waits for the answer; rank 1 waits for tag 7.
    subroutine wrong_tag()
        if (rank == 0) then
            call MPI_Send(out, SMALL, MPI_INTEGER, 1, 17, MPI_COMM_WORLD, ierror)
            call MPI_Recv(in, SMALL, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        else
            call MPI_Recv(in, SMALL, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
            call MPI_Send(out, SMALL, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, ierror)
        end if
    end subroutine

    ! Rank 2 does one step less than the others and is done. Three ranks.
    subroutine leaves_early()
        integer :: step
        do step = 1, merge(4, 5, rank == 2)
            call reduces()
        end do
    end subroutine

    ! Rank 0 broadcasts what the others think is a reduction. Three ranks.
    subroutine reduce_and_bcast()
        if (rank == 0) then
            call MPI_Bcast(out, COUNT, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
        else
            call MPI_Reduce(out, in, COUNT, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
        end if
        call MPI_Barrier(MPI_COMM_WORLD, ierror)
    end subroutine

    ! Of what rank 1 sends one has a tag that rank 0 does not wait for.
    subroutine waitall_wrong_tag()
        REQUEST :: requests(2)
        if (rank == 0) then
            call MPI_Irecv(in, SMALL, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, requests(1), ierror)
            call MPI_Irecv(in(SMALL + 1:), SMALL, MPI_INTEGER, 1, 8, MPI_COMM_WORLD, requests(2), ierror)
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
        else
            call MPI_Send(out, SMALL, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, ierror)
            call MPI_Send(out, SMALL, MPI_INTEGER, 0, 17, MPI_COMM_WORLD, ierror)
        end if
        call MPI_Barrier(MPI_COMM_WORLD, ierror)
    end subroutine

    ! Rank 1 computes and does not come to an end. Three ranks.
    subroutine computes_on()
        if (rank == 1) call computes(-1.0_real64)
        call reduces()
    end subroutine

    ! Slow: rank 0 computes before it sends what rank 1 waits for.
    subroutine late_sender()
        if (rank == 0) then
            call computes(seconds())
            call MPI_Send(out, COUNT, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, ierror)
        else
            call MPI_Recv(in, COUNT, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        end if
    end subroutine

    ! Slow: each of the steps takes a while on rank 1. Three ranks.
    subroutine slow_reduction()
        integer :: step
        do step = 1, 4
            if (rank == 1) call computes(seconds() / 4)
            call reduces()
        end do
    end subroutine
end program
