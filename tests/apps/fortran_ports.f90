! A port from Fortran, whose name MPI writes into a string: blanks behind it, no zero byte.
! Rows: those of the C calls of the same names.
#include "binding.h"
program ports
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: ierror
    character(len=MPI_MAX_PORT_NAME) :: port

    call MPI_Init(ierror)
    port = repeat('x', len(port))
    call MPI_Open_port(MPI_INFO_NULL, port, ierror)
    if (len_trim(port) == 0 .or. index(port, char(0)) /= 0 .or. port(len(port):) /= ' ') then
        call MPI_Abort(MPI_COMM_WORLD, 99, ierror)
    end if
    call MPI_Close_port(port, ierror)
    print '(a)', 'a port'
    call MPI_Finalize(ierror)
end program
