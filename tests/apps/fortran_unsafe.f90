! A ring whose ranks send before they receive: it goes on only because MPI keeps small messages.
program fortran_unsafe
    implicit none
    include 'mpif.h'
    integer, parameter :: count = 32
    integer :: rank, size, error, round
    integer :: status(MPI_STATUS_SIZE)
    double precision :: outgoing(count), incoming(count)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, size, error)
    outgoing = rank
    do round = 1, 5
        call exchange()
    end do
    call MPI_Finalize(error)

contains

    subroutine exchange()
        call MPI_Send(outgoing, count, MPI_DOUBLE_PRECISION, modulo(rank + 1, size), 0, MPI_COMM_WORLD, error)
        call MPI_Recv(incoming, count, MPI_DOUBLE_PRECISION, modulo(rank - 1, size), 0, MPI_COMM_WORLD, status, error)
    end subroutine exchange
end program fortran_unsafe
