"""Messages and collectives of plain byte arrays with mpi4py, which calls the MPI library through its C functions.

Rows: ten exchanges of 100 bytes completed by MPI_Waitall, one receive polled by MPI_Test, blocking messages, a barrier,
a broadcast and an all-reduce. Where the MPI has the calls for large counts (MPI_Isend_c), mpi4py uses those.
"""

from mpi4py import MPI

ROUNDS, BYTES, TAG, POLLED, BLOCKING, TOKEN = 10, 100, 7, 8, 3, 4

world = MPI.COMM_WORLD
rank, peer = world.rank, 1 - world.rank

for number in range(ROUNDS):
    out = bytearray((number + rank + i) % 256 for i in range(BYTES))
    into = bytearray(BYTES)
    requests = [
        world.Irecv([into, MPI.BYTE], source=peer, tag=TAG),
        world.Isend([out, MPI.BYTE], dest=peer, tag=TAG),
    ]
    statuses = [MPI.Status(), MPI.Status()]
    MPI.Request.Waitall(requests, statuses)
    assert into == bytearray((number + peer + i) % 256 for i in range(BYTES))
    assert (statuses[0].source, statuses[0].tag, statuses[0].Get_count(MPI.BYTE)) == (peer, TAG, BYTES)
    assert requests[0] == MPI.REQUEST_NULL

into = bytearray(BYTES)
request = world.Irecv([into, MPI.BYTE], source=peer, tag=POLLED)
assert not request.Test()
token, other_token = bytearray(1), bytearray(1)
world.Sendrecv([token, MPI.BYTE], peer, TOKEN, [other_token, MPI.BYTE], peer, TOKEN)
world.Send([bytearray(b"x" * 50), MPI.BYTE], dest=peer, tag=POLLED)
while not request.Test():
    pass
assert into[:50] == b"x" * 50 and into[50] == 0

if rank == 0:
    world.Send([bytearray(30), MPI.BYTE], dest=1, tag=BLOCKING)
else:
    world.Recv([bytearray(30), MPI.BYTE], source=0, tag=BLOCKING)

world.Barrier()
announced = bytearray(b"root" if rank == 1 else b"----")
world.Bcast([announced, MPI.BYTE], root=1)
assert announced == b"root"
total = bytearray(4)
world.Allreduce([(rank + 1).to_bytes(4, "little"), MPI.INT32_T], [total, MPI.INT32_T])
assert int.from_bytes(total, "little") == 3

if rank == 0:
    print(ROUNDS, "rounds")
