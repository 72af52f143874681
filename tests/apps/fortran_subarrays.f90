! Only mpi_f08: parts of arrays that do not lie together, as they are, in blocking calls, and in others where the MPI says that
! it supports this (TS 29113); ierror left out everywhere.
! Rows: bytes are those of the elements that were sent.
program subarrays
    use mpi_f08
    implicit none
    integer, parameter :: N = 6
    integer :: grid(N, N), rank, peer
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    peer = 1 - rank
    grid = 0
    grid(2, :) = rank + 1
    if (rank == 0) then
        call MPI_Send(grid(2, :), N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD)
        call MPI_Recv(grid(3:5:2, 2), 2, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, status)
        call check(grid(3, 2) == 2 .and. grid(5, 2) == 2 .and. grid(4, 2) == 0)
    else
        call MPI_Recv(grid(3, :), N, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call check(all(grid(3, :) == 1) .and. all(grid(4, :) == 0))
        call MPI_Send(grid(2, 1:4:3), 2, MPI_INTEGER, peer, 2, MPI_COMM_WORLD)
    end if
    call both_ways(grid)
    call MPI_Bcast(grid(2, 1:6:2), 3, MPI_INTEGER, 1, MPI_COMM_WORLD)
    call check(grid(2, 1) == 2 .and. grid(2, 5) == 2 .and. grid(2, 4) == rank + 1)
    if (rank == 0) print '(a)', 'parts of arrays'
    call MPI_Finalize()

contains

    subroutine check(condition)
        logical, intent(in) :: condition
        if (.not. condition) then
            print *, 'wrong data'
            call MPI_Abort(MPI_COMM_WORLD, 99)
        end if
    end subroutine

    subroutine both_ways(all_of)
        integer, asynchronous, intent(inout) :: all_of(:, :)
        integer, asynchronous :: out(3), in(3)
        if (MPI_SUBARRAYS_SUPPORTED) then
            call MPI_Irecv(all_of(6, 1:5:2), 3, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(1))
            call MPI_Isend(all_of(2, 1:5:2), 3, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(2))
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
        else
            out = all_of(2, 1:5:2)
            call MPI_Irecv(in, 3, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(1))
            call MPI_Isend(out, 3, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(2))
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
            all_of(6, 1:5:2) = in
        end if
        call check(all(all_of(6, 1:5:2) == peer + 1) .and. all_of(6, 2) == 0)
    end subroutine
end program
