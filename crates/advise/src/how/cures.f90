! == test: before
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr) @receive
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr) @send
do block = 1, blocks
  call compute(block) @line
end do
call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr) ! @wait
! == test: after
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr) @receive
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr) @send
! with: double precision :: last; logical :: done
last = MPI_Wtime()
do block = 1, blocks
  call compute(block) @line
  if (MPI_Wtime() - last > @interval) then
    call MPI_Testall(2, requests, done, MPI_STATUSES_IGNORE, ierr)
    last = MPI_Wtime()
  end if
end do
call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr) ! @wait
! == test_collective: before
@collective, requests(1), ierr) ! @post
do block = 1, blocks
  call compute(block) @line
end do
call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr) ! @wait
! == test_collective: after
@collective, requests(1), ierr) ! @post
! with: double precision :: last; logical :: done
last = MPI_Wtime()
do block = 1, blocks
  call compute(block) @line
  if (MPI_Wtime() - last > @interval) then
    call MPI_Test(requests(1), done, MPI_STATUS_IGNORE, ierr)
    last = MPI_Wtime()
  end if
end do
call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr) ! @wait
! == wait_together: before
do part = 0, 1
  call MPI_Irecv(in(1 + part * half), half, MPI_DOUBLE_PRECISION, peer, tag + part, comm, requests(1 + part), ierr)
end do
do part = 0, 1
  call MPI_Isend(out(1 + part * half), half, MPI_DOUBLE_PRECISION, peer, tag + part, comm, requests(3 + part), ierr)
  call MPI_Wait(requests(3 + part), MPI_STATUS_IGNORE, ierr) ! @post
end do
call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr) ! @wait
! == wait_together: after
do part = 0, 1
  call MPI_Irecv(in(1 + part * half), half, MPI_DOUBLE_PRECISION, peer, tag + part, comm, requests(1 + part), ierr)
end do
do part = 0, 1
  call MPI_Isend(out(1 + part * half), half, MPI_DOUBLE_PRECISION, peer, tag + part, comm, requests(3 + part), ierr)
end do
call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr) ! @wait
! == wait_behind: before
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr)
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr)
call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr) ! @post
call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr) ! @wait
call compute(1)
! == wait_behind: after
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr)
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr)
call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr) ! @wait
call compute(1)
call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr) ! before `out` changes
! == post_receive_earlier: before
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr)
call compute(1)
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr) ! @post
call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
! == post_receive_earlier: after
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr) ! @post
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr)
call compute(1)
call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
! == make_nonblocking: before
call MPI_Send(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, ierr) ! @post
call compute(1)
call MPI_Recv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, MPI_STATUS_IGNORE, ierr)
! == make_nonblocking: after
call MPI_Isend(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(2), ierr) ! @post
call compute(1)
call MPI_Recv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, MPI_STATUS_IGNORE, ierr)
call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr) ! before `out` changes
! == progress_target: before
do block = 1, blocks
  call compute(block)
end do
! == progress_target: after
! with: double precision :: last; logical :: done
last = MPI_Wtime()
do block = 1, blocks
  call compute(block)
  if (MPI_Wtime() - last > @interval) then
    call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, done, MPI_STATUS_IGNORE, ierr)
    last = MPI_Wtime()
  end if
end do
! == call_earlier: before
call MPI_Win_start(group, 0, window, ierr)
call MPI_Put(out, count, MPI_DOUBLE_PRECISION, peer, disp, count, MPI_DOUBLE_PRECISION, window, ierr)
call compute(1)
call MPI_Win_complete(window, ierr) ! @post
! == call_earlier: after
call MPI_Win_start(group, 0, window, ierr)
call MPI_Put(out, count, MPI_DOUBLE_PRECISION, peer, disp, count, MPI_DOUBLE_PRECISION, window, ierr)
call MPI_Win_complete(window, ierr) ! @post
call compute(1)
! == sendrecv: before
call MPI_Send(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, ierr) ! @post
call MPI_Recv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, MPI_STATUS_IGNORE, ierr)
! == sendrecv: after
call MPI_Sendrecv(out, count, MPI_DOUBLE_PRECISION, peer, tag, &
                  in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, MPI_STATUS_IGNORE, ierr)
! == receive_first: before
call MPI_Send(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, ierr) ! @post
call MPI_Recv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, MPI_STATUS_IGNORE, ierr)
! == receive_first: after
call MPI_Irecv(in, count, MPI_DOUBLE_PRECISION, peer, tag, comm, requests(1), ierr)
call MPI_Send(out, count, MPI_DOUBLE_PRECISION, peer, tag, comm, ierr) ! @post
call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
