# == test: before
# @post
requests = [comm.Irecv(into, peer, tag), comm.Isend(out, peer, tag)]
for block in range(blocks):
    compute(block) @line
MPI.Request.Waitall(requests)  # @wait
# == test: after
# @post
requests = [comm.Irecv(into, peer, tag), comm.Isend(out, peer, tag)]
last = MPI.Wtime()
for block in range(blocks):
    compute(block) @line
    if MPI.Wtime() - last > @interval:
        MPI.Request.Testall(requests)
        last = MPI.Wtime()
MPI.Request.Waitall(requests)  # @wait
# == test_collective: before
request = @collective)  # @post
for block in range(blocks):
    compute(block) @line
request.Wait()  # @wait
# == test_collective: after
request = @collective)  # @post
last = MPI.Wtime()
for block in range(blocks):
    compute(block) @line
    if MPI.Wtime() - last > @interval:
        request.Test()
        last = MPI.Wtime()
request.Wait()  # @wait
# == wait_together: before
receives = [comm.Irecv(into[part * half : (part + 1) * half], peer, tag + part) for part in range(2)]
for part in range(2):
    comm.Isend(out[part * half : (part + 1) * half], peer, tag + part).Wait()  # @post
MPI.Request.Waitall(receives)  # @wait
# == wait_together: after
requests = [comm.Irecv(into[part * half : (part + 1) * half], peer, tag + part) for part in range(2)]
for part in range(2):
    requests.append(comm.Isend(out[part * half : (part + 1) * half], peer, tag + part))
MPI.Request.Waitall(requests)  # @wait
# == wait_behind: before
receive, send = comm.Irecv(into, peer, tag), comm.Isend(out, peer, tag)
send.Wait()  # @post
receive.Wait()  # @wait
compute(0)
# == wait_behind: after
receive, send = comm.Irecv(into, peer, tag), comm.Isend(out, peer, tag)
receive.Wait()  # @wait
compute(0)
send.Wait()  # before `out` changes
# == post_receive_earlier: before
send = comm.Isend(out, peer, tag)
compute(0)
receive = comm.Irecv(into, peer, tag)  # @post
MPI.Request.Waitall([receive, send])
# == post_receive_earlier: after
receive = comm.Irecv(into, peer, tag)  # @post
send = comm.Isend(out, peer, tag)
compute(0)
MPI.Request.Waitall([receive, send])
# == make_nonblocking: before
comm.Send(out, peer, tag)  # @post
compute(0)
comm.Recv(into, peer, tag)
# == make_nonblocking: after
send = comm.Isend(out, peer, tag)  # @post
compute(0)
comm.Recv(into, peer, tag)
send.Wait()  # before `out` changes
# == progress_target: before
for block in range(blocks):
    compute(block)
# == progress_target: after
last = MPI.Wtime()
for block in range(blocks):
    compute(block)
    if MPI.Wtime() - last > @interval:
        comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)
        last = MPI.Wtime()
# == call_earlier: before
window.Start(group)
window.Put(out, peer)
compute(0)
window.Complete()  # @post
# == call_earlier: after
window.Start(group)
window.Put(out, peer)
window.Complete()  # @post
compute(0)
# == sendrecv: before
comm.Send(out, peer, tag)  # @post
comm.Recv(into, peer, tag)
# == sendrecv: after
comm.Sendrecv(out, peer, tag, into, peer, tag)
# == receive_first: before
comm.Send(out, peer, tag)  # @post
comm.Recv(into, peer, tag)
# == receive_first: after
receive = comm.Irecv(into, peer, tag)
comm.Send(out, peer, tag)  # @post
receive.Wait()
