! Among a program's own procedures, which have its `ierror`.
    subroutine check(condition, line)
        logical, intent(in) :: condition
        integer, intent(in) :: line
        if (.not. condition) then
            print *, 'not so: line', line
            call MPI_Abort(MPI_COMM_WORLD, 99, ierror)
        end if
    end subroutine
