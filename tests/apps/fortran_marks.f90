! Steps and regions marked from Fortran. A name goes behind the level, with a zero at its end; MPI's own interface has no place
! for it, so the call is an external one, and the name a copy: MPICH takes it for ierror.
! Rows: each mark once, although MPICH's MPI_Pcontrol of Fortran calls that of C.
program marks
    implicit none
    include 'mpif.h'
    integer :: rank, ierror, step

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    do step = 1, 3
        call MPI_Pcontrol(2)
        call region(1, 'solve')
        call MPI_Barrier(MPI_COMM_WORLD, ierror)
        call region(-1, 'solve')
    end do
    if (rank == 0) print '(a)', 'marked'
    call MPI_Finalize(ierror)
end program

subroutine region(level, name)
    implicit none
    integer, intent(in) :: level
    character(len=*), intent(in) :: name
    character(len=64) :: copy
    external MPI_Pcontrol

    copy = name//char(0)
    call MPI_Pcontrol(level, copy)
end subroutine
