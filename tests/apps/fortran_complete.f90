! Every way of completing requests from Fortran, with statuses and with MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE. Arrays are
! filled with a pattern first: what MPI does not write must keep it.
! Rows: those of the C calls of the same names.
#include "binding.h"
program complete
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer, parameter :: ELEMENTS = 5, MESSAGES = 4, GO = 50, PATTERN = -77
    integer :: rank, peer, length, ierror
    logical :: open_mpi
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: shift = 0 ! from what MPI says to the request's place
    integer :: data(ELEMENTS, MESSAGES)
    REQUEST :: requests(MESSAGES)
    STATUSES(statuses, MESSAGES)
    STATUS(status)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    peer = 1 - rank
    call MPI_Get_library_version(version, length, ierror)
    open_mpi = index(version, 'Open MPI') > 0
    if (rank == 0) then
        call wait_each(.false.)
        call wait_each(.true.)
        call wait_all(.false.)
        call wait_all(.true.)
        call wait_any(.false.)
        call wait_any(.true.)
        call wait_some(.false.)
        call wait_some(.true.)
        call test_each(.false.)
        call test_each(.true.)
        call test_all(.false.)
        call test_all(.true.)
        call test_any(.false.)
        call test_any(.true.)
        call test_some(.false.)
        call test_some(.true.)
        call wait_mixed()
        print '(a)', 'seventeen ways'
    else
        call send_all(17)
    end if
    call MPI_Finalize(ierror)

contains

#include "check_fortran.h"

    ! Lets the other rank send two messages.
    subroutine next_two()
        call MPI_Send(data, 0, MPI_INTEGER, peer, GO, MPI_COMM_WORLD, ierror)
    end subroutine

    ! Receives of MESSAGES messages with tags 1.., the first two of which are sent.
    subroutine post()
        integer :: i
        data = 0
        do i = 1, MESSAGES
            SOURCE_AT(statuses, i) = PATTERN
            TAG_AT(statuses, i) = PATTERN
            call MPI_Irecv(data(:, i), ELEMENTS, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(i), ierror)
            call check(ierror == MPI_SUCCESS, __LINE__)
        end do
        call next_two()
    end subroutine

    subroutine post_all()
        call post()
        call next_two()
    end subroutine

    subroutine send_all(rounds)
        integer, intent(in) :: rounds
        integer :: i, round
        STATUS(ignored)
        do round = 1, rounds
            do i = 1, MESSAGES
                if (mod(i, 2) == 1) then
                    call MPI_Recv(data, 0, MPI_INTEGER, peer, GO, MPI_COMM_WORLD, ignored, ierror)
                    call check(SOURCE(ignored) == peer .and. TAG(ignored) == GO, __LINE__)
                end if
                data(:, i) = i
                call MPI_Send(data(:, i), ELEMENTS, MPI_INTEGER, peer, i, MPI_COMM_WORLD, ierror)
            end do
        end do
    end subroutine

    subroutine check_done(i)
        integer, intent(in) :: i
        call check(all(data(:, i) == i) .and. requests(i) == MPI_REQUEST_NULL, __LINE__)
    end subroutine

    ! Element `at` of the statuses says that message `i` came.
    subroutine check_status(at, i)
        integer, intent(in) :: at, i
        integer :: count
        call MPI_Get_count(STATUS_AT(statuses, at), MPI_INTEGER, count, ierror)
        call check(SOURCE_AT(statuses, at) == peer .and. TAG_AT(statuses, at) == i .and. count == ELEMENTS, __LINE__)
    end subroutine

    subroutine check_untouched(first)
        integer, intent(in) :: first
        integer :: i
        do i = first, MESSAGES
            call check(SOURCE_AT(statuses, i) == PATTERN .and. TAG_AT(statuses, i) == PATTERN, __LINE__)
        end do
    end subroutine

    subroutine wait_each(ignore)
        logical, intent(in) :: ignore
        integer :: i
        call post_all()
        do i = 1, MESSAGES
            if (ignore) then
                call MPI_Wait(requests(i), MPI_STATUS_IGNORE, ierror)
            else
                call MPI_Wait(requests(i), status, ierror)
                call check(SOURCE(status) == peer .and. TAG(status) == i, __LINE__)
            end if
            call check_done(i)
        end do
        call check_untouched(1)
    end subroutine

    subroutine wait_all(ignore)
        logical, intent(in) :: ignore
        integer :: i
        call post_all()
        if (ignore) then
            call MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE, ierror)
            call check_untouched(1)
        else
            call MPI_Waitall(MESSAGES, requests, statuses, ierror)
        end if
        do i = 1, MESSAGES
            call check_done(i)
            if (.not. ignore) call check_status(i, i)
        end do
    end subroutine

    ! The request that MPI has just set to MPI_REQUEST_NULL. MPICH 4.0 counts indices from 0 in mpi_f08.
    integer function done_now(index, left)
        integer, intent(in) :: index
        logical, intent(inout) :: left(MESSAGES)
        integer :: i
        done_now = 0
        do i = 1, MESSAGES
            if (left(i) .and. requests(i) == MPI_REQUEST_NULL) done_now = i
        end do
        call check(done_now > 0 .and. (index == done_now .or. index == done_now - 1), __LINE__)
        shift = done_now - index
        left(done_now) = .false.
    end function

    subroutine wait_any(ignore)
        logical, intent(in) :: ignore
        logical :: left(MESSAGES)
        integer :: i, index, done
        call post_all()
        left = .true.
        do i = 1, MESSAGES
            if (ignore) then
                call MPI_Waitany(MESSAGES, requests, index, MPI_STATUS_IGNORE, ierror)
            else
                call MPI_Waitany(MESSAGES, requests, index, status, ierror)
            end if
            done = done_now(index, left)
            if (.not. ignore) call check(SOURCE(status) == peer .and. TAG(status) == done, __LINE__)
            call check_done(done)
        end do
        call MPI_Waitany(MESSAGES, requests, index, MPI_STATUS_IGNORE, ierror)
        call check(index == MPI_UNDEFINED .or. index == MPI_UNDEFINED + 1, __LINE__) ! MPICH 4.0 adds 1 to that, too
    end subroutine

    subroutine wait_some(ignore)
        logical, intent(in) :: ignore
        integer :: left, completed, i, indices(MESSAGES)
        call post()
        left = MESSAGES
        do while (left > 0)
            call reset(indices)
            if (ignore) then
                call MPI_Waitsome(MESSAGES, requests, completed, indices, MPI_STATUSES_IGNORE, ierror)
            else
                call MPI_Waitsome(MESSAGES, requests, completed, indices, statuses, ierror)
            end if
            call check_some(completed, indices, ignore)
            left = left - completed
            if (left == 2 .and. completed > 0) call next_two()
        end do
        call MPI_Waitsome(MESSAGES, requests, completed, indices, MPI_STATUSES_IGNORE, ierror)
        call check(completed == MPI_UNDEFINED, __LINE__)
    end subroutine

    ! Persistent requests among others: their handles stay, so that fewer are nulled than are reported.
    subroutine wait_mixed()
        integer :: left, completed, i, at, indices(MESSAGES)
        data = 0
        do i = 1, MESSAGES, 2
            call MPI_Irecv(data(:, i), ELEMENTS, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(i), ierror)
            call MPI_Recv_init(data(:, i + 1), ELEMENTS, MPI_INTEGER, peer, i + 1, MPI_COMM_WORLD, requests(i + 1), ierror)
            call MPI_Start(requests(i + 1), ierror)
        end do
        call next_two()
        left = MESSAGES
        do while (left > 0)
            call MPI_Waitsome(MESSAGES, requests, completed, indices, statuses, ierror)
            do i = 1, completed
                at = indices(i) + shift
                call check(all(data(:, at) == at), __LINE__)
                call check((requests(at) == MPI_REQUEST_NULL) .eqv. mod(at, 2) == 1, __LINE__)
                call check_status(i, at)
            end do
            left = left - completed
            if (left == 2 .and. completed > 0) call next_two()
        end do
        call MPI_Request_free(requests(2), ierror)
        call MPI_Request_free(requests(4), ierror)
    end subroutine

    subroutine reset(indices)
        integer, intent(out) :: indices(MESSAGES)
        integer :: i
        indices = PATTERN
        do i = 1, MESSAGES
            SOURCE_AT(statuses, i) = PATTERN
            TAG_AT(statuses, i) = PATTERN
        end do
    end subroutine

    ! What MPI_Waitsome and MPI_Testsome say of `completed` requests, and nothing in the statuses behind: but Open MPI writes
    ! all of them.
    subroutine check_some(completed, indices, ignore)
        integer, intent(in) :: completed, indices(MESSAGES)
        logical, intent(in) :: ignore
        integer :: i
        call check(completed >= 0 .and. completed <= 2, __LINE__)
        do i = 1, completed
            call check_done(indices(i) + shift)
            if (.not. ignore) call check_status(i, indices(i) + shift)
        end do
        if (ignore) call check_untouched(1)
        if (.not. ignore .and. .not. open_mpi) call check_untouched(completed + 1)
    end subroutine

    subroutine test_each(ignore)
        logical, intent(in) :: ignore
        logical :: flag
        integer :: i
        call post_all()
        do i = 1, MESSAGES
            flag = .false.
            do while (.not. flag)
                if (ignore) then
                    call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE, ierror)
                else
                    call MPI_Test(requests(i), flag, status, ierror)
                end if
            end do
            if (.not. ignore) call check(SOURCE(status) == peer .and. TAG(status) == i, __LINE__)
            call check_done(i)
        end do
    end subroutine

    subroutine test_all(ignore)
        logical, intent(in) :: ignore
        logical :: flag
        integer :: i
        call post_all()
        flag = .false.
        do while (.not. flag)
            if (ignore) then
                call MPI_Testall(MESSAGES, requests, flag, MPI_STATUSES_IGNORE, ierror)
            else
                call MPI_Testall(MESSAGES, requests, flag, statuses, ierror)
            end if
        end do
        do i = 1, MESSAGES
            call check_done(i)
            if (.not. ignore) call check_status(i, i)
        end do
        if (ignore) call check_untouched(1)
    end subroutine

    subroutine test_any(ignore)
        logical, intent(in) :: ignore
        logical :: flag, left(MESSAGES)
        integer :: i, index, done
        call post_all()
        left = .true.
        do i = 1, MESSAGES
            flag = .false.
            do while (.not. flag)
                if (ignore) then
                    call MPI_Testany(MESSAGES, requests, index, flag, MPI_STATUS_IGNORE, ierror)
                else
                    call MPI_Testany(MESSAGES, requests, index, flag, status, ierror)
                end if
            end do
            done = done_now(index, left)
            if (.not. ignore) call check(SOURCE(status) == peer .and. TAG(status) == done, __LINE__)
            call check_done(done)
        end do
    end subroutine

    subroutine test_some(ignore)
        logical, intent(in) :: ignore
        integer :: left, completed, indices(MESSAGES)
        call post()
        left = MESSAGES
        do while (left > 0)
            call reset(indices)
            if (ignore) then
                call MPI_Testsome(MESSAGES, requests, completed, indices, MPI_STATUSES_IGNORE, ierror)
            else
                call MPI_Testsome(MESSAGES, requests, completed, indices, statuses, ierror)
            end if
            call check_some(completed, indices, ignore)
            left = left - completed
            if (left == 2 .and. completed > 0) call next_two()
        end do
    end subroutine
end program
