! Formatted output and input while messages are pending: into character variables, scratch files and streams, and back.
#include "../binding.h"
program io
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer, parameter :: MESSAGES = 3, COUNT = 100003, LINES = 100, USUAL_ROUNDS = 60
    integer, save :: out(COUNT, MESSAGES), in(COUNT, MESSAGES)
    REQUEST :: requests(2 * MESSAGES)
    integer :: rank, peer, round, rounds, ierror
    character(len=20) :: argument

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    peer = 1 - rank
    rounds = USUAL_ROUNDS
    call get_command_argument(1, argument)
    if (argument /= ' ') read (argument, *) rounds
    do round = 1, rounds
        call begin_traffic()
        call through_strings()
        call through_a_file()
        call through_a_stream()
        if (rank == 0 .and. mod(round, 20) == 0) print '(a,i0)', 'round ', round
        call end_traffic()
    end do
    if (rank == 0) print '(a)', 'what was written was read'
    call MPI_Finalize(ierror)

contains

#include "../check_fortran.h"

    ! Words of a message; the third message is short.
    integer function words(message)
        integer, intent(in) :: message
        words = merge(100, COUNT, message == MESSAGES)
    end function

    integer function word(i, message, sender)
        integer, intent(in) :: i, message, sender
        word = i + 1000 * (message + 10 * (sender + 2 * round))
    end function

    ! The first receive is posted before the work, the others behind it.
    subroutine begin_traffic()
        integer :: i, message
        do message = 1, MESSAGES
            do i = 1, words(message)
                out(i, message) = word(i, message, rank)
            end do
        end do
        call receive(1)
        do message = 1, MESSAGES
            call MPI_Isend(out(1, message), words(message), MPI_INTEGER, peer, message, MPI_COMM_WORLD, &
                           requests(MESSAGES + message), ierror)
        end do
    end subroutine

    subroutine receive(message)
        integer, intent(in) :: message
        call MPI_Irecv(in(1, message), words(message), MPI_INTEGER, peer, message, MPI_COMM_WORLD, requests(message), ierror)
    end subroutine

    subroutine end_traffic()
        integer :: i, message
        call receive(2)
        call receive(3)
        call MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE, ierror)
        do message = 1, MESSAGES
            do i = 1, words(message)
                if (in(i, message) /= word(i, message, peer)) call check(.false., __LINE__)
            end do
        end do
    end subroutine

    subroutine through_strings()
        character(len=80) :: text
        integer :: i, number
        real(kind=8) :: value
        do i = 1, LINES
            write (text, '(i10,1x,es30.20e3)') i, i / 3.0d0
            read (text, *) number, value
            call check(number == i .and. abs(value - i / 3.0d0) < 1d-15 * i, __LINE__)
        end do
    end subroutine

    subroutine through_a_file()
        integer :: unit, i, number
        real(kind=8) :: value
        character(len=8) :: name
        open (newunit=unit, status='scratch', form='formatted', action='readwrite')
        do i = 1, LINES
            write (unit, '(i0,1x,f0.6,1x,a)') i, i * 0.5d0, 'word'
        end do
        flush (unit)
        rewind (unit)
        do i = 1, LINES
            read (unit, *) number, value, name
            call check(number == i .and. value == i * 0.5d0 .and. name == 'word', __LINE__)
        end do
        close (unit)
    end subroutine

    subroutine through_a_stream()
        integer :: unit, i, number
        open (newunit=unit, status='scratch', form='unformatted', access='stream', action='readwrite')
        do i = 1, LINES
            write (unit) i * round
        end do
        rewind (unit)
        do i = 1, LINES
            read (unit) number
            call check(number == i * round, __LINE__)
        end do
        close (unit)
    end subroutine

end program
