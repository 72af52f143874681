! Calls by names in capitals, as some compilers write them.
! Rows: those of the C calls of the same names.
program upper
    implicit none
    include 'mpif.h'
    interface
        subroutine irecv(buffer, count, datatype, source, tag, comm, request, ierror) bind(C, name='MPI_IRECV')
            integer :: buffer(*), count, datatype, source, tag, comm, request, ierror
        end subroutine
        subroutine isend(buffer, count, datatype, dest, tag, comm, request, ierror) bind(C, name='MPI_ISEND')
            integer :: buffer(*), count, datatype, dest, tag, comm, request, ierror
        end subroutine
        subroutine wait_for(request, status, ierror) bind(C, name='MPI_WAIT')
            integer :: request, status(*), ierror
        end subroutine
        subroutine barrier(comm, ierror) bind(C, name='MPI_BARRIER')
            integer :: comm, ierror
        end subroutine
    end interface
    integer, parameter :: COUNT = 6
    integer :: rank, peer, ierror, first, second, status(MPI_STATUS_SIZE)
    integer :: data(COUNT), other(COUNT)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    peer = 1 - rank
    data = rank
    call irecv(other, COUNT, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, first, ierror)
    call isend(data, COUNT, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, second, ierror)
    call wait_for(second, status, ierror)
    call wait_for(first, status, ierror)
    if (other(COUNT) /= peer .or. status(MPI_SOURCE) /= peer) call MPI_Abort(MPI_COMM_WORLD, 99, ierror)
    call barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) print '(a)', 'capitals'
    call MPI_Finalize(ierror)
end program
