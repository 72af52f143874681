! As frame.c; the test puts calls and subroutines in place of the two lines
! in capitals. It is in free form and in fixed form.
      program cures
      use mpi
      implicit none
      integer, parameter :: size = 100
      double precision :: in(size), out(size), last
      integer :: peer, count = size, half = size / 2, tag = 7
      integer :: blocks = 4, comm, all, group, window, requests(4), ierr
      integer :: part, block, number, i
      integer(MPI_ADDRESS_KIND) :: disp = 0, n = 8 * size
      logical :: done

      call MPI_Init(ierr)
      comm = MPI_COMM_WORLD
      call MPI_Comm_rank(comm, peer, ierr)
      peer = 1 - peer
      call MPI_Win_create(in, n, 8, MPI_INFO_NULL, comm, window, ierr)
      call MPI_Comm_group(comm, all, ierr)
      call MPI_Group_incl(all, 1, [peer], group, ierr)
      number = 0
! CALLS
      call MPI_Win_free(window, ierr)
      if (peer == 1) print '(I0, A)', number, ' cures'
      call MPI_Finalize(ierr)

      contains

      subroutine compute(block)
      integer, intent(in) :: block
      double precision :: end
      end = MPI_Wtime() + 1d-3 + 1d-9 * block
      do while (MPI_Wtime() < end)
      end do
      end subroutine

      subroutine begin(has_epoch)
      logical, intent(in) :: has_epoch
      number = number + 1
      in = -1
      out = [(i * (2 - peer) + number, i = 1, size)]
      call MPI_Barrier(comm, ierr)
      if (has_epoch) call MPI_Win_post(group, 0, window, ierr)
      end subroutine

      subroutine finish(has_epoch, receives)
      logical, intent(in) :: has_epoch, receives
      logical :: is_wrong
      if (has_epoch) call MPI_Win_wait(window, ierr)
      is_wrong = any(in /= [(i * (1 + peer) + number, i = 1, size)])
      if (receives .and. is_wrong) call MPI_Abort(comm, 1, ierr)
      end subroutine

! CURES
      end program
