! Calls of each family, without constants that are addresses: for compilers that give functions other names than the MPI's
! own compiler does, and with them its common blocks.
! Rows: those of the C calls of the same names.
program names
    implicit none
    include 'mpif.h'
    integer, parameter :: COUNT = 6
    integer :: rank, peer, ierror, handle, request(2), status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
    integer :: data(COUNT), other(COUNT)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    peer = 1 - rank
    data = rank
    call MPI_Irecv(other, COUNT, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request(1), ierror)
    call MPI_Isend(data, COUNT, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request(2), ierror)
    call MPI_Waitall(2, request, statuses, ierror)
    call check(other(COUNT) == peer .and. statuses(MPI_SOURCE, 1) == peer)
    call MPI_Recv_init(other, COUNT, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, request, ierror)
    call MPI_Start(request, ierror)
    call MPI_Send(data, COUNT, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, ierror)
    call MPI_Wait(request, status, ierror)
    call check(status(MPI_TAG) == 2)
    call MPI_Request_free(request, ierror)
    call MPI_Allreduce(data, other, COUNT, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(other(1) == 1)
    call MPI_File_open(MPI_COMM_WORLD, 'data ', MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, handle, ierror)
    call MPI_File_write_all(handle, data, COUNT, MPI_INTEGER, status, ierror)
    call MPI_File_close(handle, ierror)
    if (rank == 0) print '(a)', 'other names'
    call MPI_Finalize(ierror)

contains

    subroutine check(condition)
        logical, intent(in) :: condition
        if (.not. condition) call MPI_Abort(MPI_COMM_WORLD, 99, ierror)
    end subroutine
end program
