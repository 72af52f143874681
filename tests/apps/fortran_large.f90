! Only mpi_f08: counts of kind MPI_COUNT_KIND, where the MPI has them.
! Rows: those of the C calls with `_c` behind their names.
program large
    use mpi_f08
    implicit none
    integer(kind=MPI_COUNT_KIND), parameter :: N = 10
    integer(kind=MPI_COUNT_KIND) :: got
    integer :: data(N), other(N), rank, peer
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    peer = 1 - rank
    data = rank
    call MPI_Irecv(other, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(data, N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Wait(requests(1), status)
    call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
    call MPI_Get_count(status, MPI_INTEGER, got)
    if (got /= N .or. any(other /= peer)) call MPI_Abort(MPI_COMM_WORLD, 99)
    call MPI_Allreduce(data, other, N, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (any(other /= 1)) call MPI_Abort(MPI_COMM_WORLD, 99)
    call MPI_Ibcast(data, N, MPI_INTEGER, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (any(data /= 1)) call MPI_Abort(MPI_COMM_WORLD, 99)
    if (rank == 0) print '(a)', 'large counts'
    call MPI_Finalize()
end program
