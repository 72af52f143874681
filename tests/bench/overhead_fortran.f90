! The batches of overhead.c with `use mpi_f08`, to self: prints the median CPU time of a request in nanoseconds. PMPI calls are no
! way around a profiler here (some MPIs' Fortran functions call C's), so run it with and without, in turn.
!
!   overhead_fortran IN_FLIGHT ROUNDS
program overhead_fortran
   use mpi_f08
   use, intrinsic :: iso_fortran_env, only: real64
   implicit none
   integer, parameter :: messages = 20000
   integer :: in_flight, rounds, round
   character(len=32) :: text
   real(real64), allocatable :: times(:)
   character, allocatable :: send(:), receive(:)
   type(MPI_Request), allocatable :: requests(:)

   call get_command_argument(1, text)
   read (text, *) in_flight
   call get_command_argument(2, text)
   read (text, *) rounds
   allocate (times(rounds), send(8), receive(8*in_flight), requests(2*in_flight))
   call MPI_Init()
   times(1) = batch() ! warm
   do round = 1, rounds
      times(round) = batch()
   end do
   call sort(times)
   print '(f0.1)', times((rounds + 1)/2)
   call MPI_Finalize()

contains

   function batch() result(ns_per_request)
      real(real64) :: ns_per_request
      real(real64) :: begin, finish
      integer :: done, i
      call cpu_time(begin)
      do done = 1, messages, in_flight
         do i = 1, in_flight
            call MPI_Irecv(receive(8*i - 7:8*i), 8, MPI_CHARACTER, 0, 0, MPI_COMM_WORLD, requests(i))
         end do
         do i = 1, in_flight
            call MPI_Isend(send, 8, MPI_CHARACTER, 0, 0, MPI_COMM_WORLD, requests(in_flight + i))
         end do
         call MPI_Waitall(2*in_flight, requests, MPI_STATUSES_IGNORE)
      end do
      call cpu_time(finish)
      ns_per_request = (finish - begin)*1e9_real64/(2*messages)
   end function batch

   subroutine sort(values)
      real(real64), intent(inout) :: values(:)
      integer :: i, j
      real(real64) :: value
      do i = 2, size(values)
         value = values(i)
         do j = i - 1, 1, -1
            if (values(j) <= value) exit
            values(j + 1) = values(j)
         end do
         values(j + 1) = value
      end do
   end subroutine sort
end program overhead_fortran
