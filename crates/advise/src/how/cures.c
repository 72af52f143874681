/* == test: before */
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]); @receive
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]); @send
for (int block = 0; block < blocks; block++)
    compute(block); @line
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* @wait */
/* == test: after */
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]); @receive
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]); @send
double last = MPI_Wtime();
for (int block = 0; block < blocks; block++) {
    compute(block); @line
    if (MPI_Wtime() - last > @interval) {
        int done;
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        last = MPI_Wtime();
    }
}
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* @wait */
/* == test_collective: before */
@collective, &requests[0]); /* @post */
for (int block = 0; block < blocks; block++)
    compute(block); @line
MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* @wait */
/* == test_collective: after */
@collective, &requests[0]); /* @post */
double last = MPI_Wtime();
for (int block = 0; block < blocks; block++) {
    compute(block); @line
    if (MPI_Wtime() - last > @interval) {
        int done;
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
        last = MPI_Wtime();
    }
}
MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* @wait */
/* == wait_together: before */
for (int part = 0; part < 2; part++)
    MPI_Irecv(&in[part * half], half, MPI_DOUBLE, peer, tag + part, comm, &requests[part]);
for (int part = 0; part < 2; part++) {
    MPI_Isend(&out[part * half], half, MPI_DOUBLE, peer, tag + part, comm, &requests[2 + part]);
    MPI_Wait(&requests[2 + part], MPI_STATUS_IGNORE); /* @post */
}
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* @wait */
/* == wait_together: after */
for (int part = 0; part < 2; part++)
    MPI_Irecv(&in[part * half], half, MPI_DOUBLE, peer, tag + part, comm, &requests[part]);
for (int part = 0; part < 2; part++)
    MPI_Isend(&out[part * half], half, MPI_DOUBLE, peer, tag + part, comm, &requests[2 + part]);
MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* @wait */
/* == wait_behind: before */
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]);
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]);
MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* @post */
MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* @wait */
compute(0);
/* == wait_behind: after */
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]);
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]);
MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* @wait */
compute(0);
MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* before `out` changes */
/* == post_receive_earlier: before */
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]);
compute(0);
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]); /* @post */
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
/* == post_receive_earlier: after */
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]); /* @post */
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]);
compute(0);
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
/* == make_nonblocking: before */
MPI_Send(out, count, MPI_DOUBLE, peer, tag, comm); /* @post */
compute(0);
MPI_Recv(in, count, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE);
/* == make_nonblocking: after */
MPI_Isend(out, count, MPI_DOUBLE, peer, tag, comm, &requests[1]); /* @post */
compute(0);
MPI_Recv(in, count, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE);
MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* before `out` changes */
/* == progress_target: before */
for (int block = 0; block < blocks; block++)
    compute(block);
/* == progress_target: after */
double last = MPI_Wtime();
for (int block = 0; block < blocks; block++) {
    compute(block);
    if (MPI_Wtime() - last > @interval) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, MPI_STATUS_IGNORE);
        last = MPI_Wtime();
    }
}
/* == call_earlier: before */
MPI_Win_start(group, 0, window);
MPI_Put(out, count, MPI_DOUBLE, peer, 0, count, MPI_DOUBLE, window);
compute(0);
MPI_Win_complete(window); /* @post */
/* == call_earlier: after */
MPI_Win_start(group, 0, window);
MPI_Put(out, count, MPI_DOUBLE, peer, 0, count, MPI_DOUBLE, window);
MPI_Win_complete(window); /* @post */
compute(0);
/* == sendrecv: before */
MPI_Send(out, count, MPI_DOUBLE, peer, tag, comm); /* @post */
MPI_Recv(in, count, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE);
/* == sendrecv: after */
MPI_Sendrecv(out, count, MPI_DOUBLE, peer, tag, in, count, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE);
/* == receive_first: before */
MPI_Send(out, count, MPI_DOUBLE, peer, tag, comm); /* @post */
MPI_Recv(in, count, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE);
/* == receive_first: after */
MPI_Irecv(in, count, MPI_DOUBLE, peer, tag, comm, &requests[0]);
MPI_Send(out, count, MPI_DOUBLE, peer, tag, comm); /* @post */
MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
