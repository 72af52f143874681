! Messages from Fortran: the modes of sending, probes, matched probes, MPI_PROC_NULL, MPI_BOTTOM, persistent requests, free and
! cancel. The optional ierror is left out where mpi_f08 allows it.
! Rows: those of the C calls of the same names.
#include "binding.h"
#ifdef USE_MPI_F08
#define IERROR
#else
#define IERROR , ierror
#endif
program messages
    USE_MPI
    use, intrinsic :: iso_c_binding, only: c_ptr
    implicit none
    INCLUDE_MPI
    integer, parameter :: COUNT = 6, ROUNDS = 3
    integer, save :: data(COUNT), other(COUNT)
    integer :: rank, peer, ierror, expected(COUNT)
    character(len=20000) :: buffer

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    peer = 1 - rank
    call modes()
    call probes()
    call matched()
    call nobody()
    call bottom()
    call persistent()
    call freed()
    call cancelled()
    if (rank == 0) print '(a)', 'all modes'
    call MPI_Finalize(ierror)

contains

#include "check_fortran.h"

    subroutine receive(tag)
        integer, intent(in) :: tag
        STATUS(status)
        integer :: got
        other = 0
        call MPI_Recv(other, COUNT, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, status, ierror)
        call MPI_Get_count(status, MPI_INTEGER, got, ierror)
        call check(all(other == tag) .and. got == COUNT .and. SOURCE(status) == peer .and. TAG(status) == tag, __LINE__)
    end subroutine

    subroutine modes()
        REQUEST :: requests(4)
#ifdef USE_MPI_F08
        type(c_ptr) :: detached
#else
        integer(kind=MPI_ADDRESS_KIND) :: detached
#endif
        integer :: i, size
        if (rank == 1) then
            do i = 1, 8
                call receive(i)
            end do
            return
        end if
        call MPI_Buffer_attach(buffer, len(buffer), ierror)
        data = 1
        call MPI_Send(data, COUNT, MPI_INTEGER, peer, 1, MPI_COMM_WORLD IERROR)
        data = 2
        call MPI_Bsend(data, COUNT, MPI_INTEGER, peer, 2, MPI_COMM_WORLD IERROR)
        data = 3
        call MPI_Ssend(data, COUNT, MPI_INTEGER, peer, 3, MPI_COMM_WORLD IERROR)
        data = 4
        call MPI_Rsend(data, COUNT, MPI_INTEGER, peer, 4, MPI_COMM_WORLD IERROR)
        data = 5
        call MPI_Isend(data, COUNT, MPI_INTEGER, peer, 5, MPI_COMM_WORLD, requests(1) IERROR)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE IERROR)
        data = 6
        call MPI_Ibsend(data, COUNT, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, requests(2) IERROR)
        call MPI_Wait(requests(2), MPI_STATUS_IGNORE IERROR)
        data = 7
        call MPI_Issend(data, COUNT, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(3) IERROR)
        call MPI_Wait(requests(3), MPI_STATUS_IGNORE IERROR)
        data = 8
        call MPI_Irsend(data, COUNT, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, requests(4) IERROR)
        call MPI_Wait(requests(4), MPI_STATUS_IGNORE IERROR)
        call MPI_Buffer_detach(detached, size, ierror)
    end subroutine

    subroutine probes()
        STATUS(status)
        logical :: flag
        integer :: got
        data = 20
        call MPI_Sendrecv(data, COUNT, MPI_INTEGER, peer, 20, other, COUNT, MPI_INTEGER, peer, 20, MPI_COMM_WORLD, status, ierror)
        call check(all(other == 20) .and. TAG(status) == 20, __LINE__)
        data = 21
        call MPI_Sendrecv_replace(data, COUNT, MPI_INTEGER, peer, 21, peer, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        if (rank == 0) then
            call MPI_Send(data, COUNT, MPI_INTEGER, peer, 21, MPI_COMM_WORLD, ierror)
            data = 22
            call MPI_Send(data, COUNT, MPI_INTEGER, peer, 22, MPI_COMM_WORLD, ierror)
        else
            call MPI_Probe(MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, status, ierror)
            call MPI_Get_count(status, MPI_INTEGER, got, ierror)
            call check(got == COUNT .and. SOURCE(status) == 0, __LINE__)
            call receive(21)
            flag = .false.
            do while (.not. flag)
                call MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierror)
            end do
            call receive(22)
        end if
    end subroutine

    subroutine matched()
        MESSAGE :: message
        REQUEST :: request
        STATUS(status)
        logical :: flag
        data = 30
        if (rank == 0) then
            call MPI_Send(data, COUNT, MPI_INTEGER, peer, 30, MPI_COMM_WORLD, ierror)
            call MPI_Send(data, COUNT, MPI_INTEGER, peer, 31, MPI_COMM_WORLD, ierror)
            return
        end if
        other = 0
        call MPI_Mprobe(0, 30, MPI_COMM_WORLD, message, status, ierror)
        call MPI_Mrecv(other, COUNT, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierror)
        call check(all(other == 30) .and. message == MPI_MESSAGE_NULL .and. TAG(status) == 30, __LINE__)
        other = 0
        flag = .false.
        do while (.not. flag)
            call MPI_Improbe(MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, flag, message, MPI_STATUS_IGNORE, ierror)
        end do
        call MPI_Imrecv(other, COUNT, MPI_INTEGER, message, request, ierror)
        call MPI_Wait(request, status, ierror)
        call check(all(other == 30) .and. TAG(status) == 31, __LINE__)
    end subroutine

    subroutine nobody()
        REQUEST :: request
        call MPI_Send(data, COUNT, MPI_INTEGER, MPI_PROC_NULL, 40, MPI_COMM_WORLD, ierror)
        call MPI_Irecv(data, COUNT, MPI_INTEGER, MPI_PROC_NULL, 40, MPI_COMM_WORLD, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
        call check(request == MPI_REQUEST_NULL, __LINE__)
    end subroutine

    ! A type with an absolute address, sent from MPI_BOTTOM.
    subroutine bottom()
        DATATYPE :: absolute
        integer(kind=MPI_ADDRESS_KIND) :: address(1)
        integer :: lengths(1)
        DATATYPE :: types(1)
        data = 50
        lengths = COUNT
        types = MPI_INTEGER
        call MPI_Get_address(data, address(1), ierror)
        call MPI_Type_create_struct(1, lengths, address, types, absolute, ierror)
        call MPI_Type_commit(absolute, ierror)
        if (rank == 0) then
            call MPI_Send(MPI_BOTTOM, 1, absolute, peer, 50, MPI_COMM_WORLD, ierror)
        else
            data = 0
            call MPI_Recv(MPI_BOTTOM, 1, absolute, peer, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
            call check(data(COUNT) == 50, __LINE__)
        end if
        call MPI_Type_free(absolute, ierror)
    end subroutine

    subroutine persistent()
        REQUEST :: requests(2)
        STATUSES(statuses, 2)
        integer :: round
        call MPI_Recv_init(other, COUNT, MPI_INTEGER, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, requests(1), ierror)
        call MPI_Send_init(data, COUNT, MPI_INTEGER, peer, 60, MPI_COMM_WORLD, requests(2), ierror)
        do round = 1, ROUNDS
            data = round
            if (round == 1) then
                call MPI_Start(requests(1), ierror)
                call MPI_Start(requests(2), ierror)
            else
                call MPI_Startall(2, requests, ierror)
            end if
            call MPI_Waitall(2, requests, statuses, ierror)
            call check(all(other == round) .and. SOURCE_AT(statuses, 1) == peer .and. TAG_AT(statuses, 1) == 60, __LINE__)
        end do
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
        call check(requests(1) /= MPI_REQUEST_NULL, __LINE__)
        call MPI_Request_free(requests(1), ierror)
        call MPI_Request_free(requests(2), ierror)
    end subroutine

    subroutine freed()
        REQUEST :: request
        data = 70
        if (rank == 0) then
            call MPI_Issend(data, COUNT, MPI_INTEGER, peer, 70, MPI_COMM_WORLD, request, ierror)
            call MPI_Request_free(request, ierror)
            call check(request == MPI_REQUEST_NULL, __LINE__)
        else
            call receive(70)
        end if
        call MPI_Barrier(MPI_COMM_WORLD, ierror)
    end subroutine

    subroutine cancelled()
        REQUEST :: request
        STATUS(status)
        logical :: flag
        call MPI_Irecv(data, COUNT, MPI_INTEGER, peer, 80, MPI_COMM_WORLD, request, ierror)
        call MPI_Request_get_status(request, flag, MPI_STATUS_IGNORE, ierror)
        call check(.not. flag, __LINE__)
        call MPI_Cancel(request, ierror)
        call MPI_Wait(request, status, ierror)
        call MPI_Test_cancelled(status, flag, ierror)
        call check(flag, __LINE__)
    end subroutine
end program
