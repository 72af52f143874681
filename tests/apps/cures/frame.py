"""As frame.c; the test puts functions and a table of them in place of the line in capitals."""

from array import array

from mpi4py import MPI

SIZE = 100
comm = MPI.COMM_WORLD
peer, tag, half, blocks = 1 - comm.rank, 7, SIZE // 2, 4
memory = array("d", [0.0] * SIZE)
into, out = memoryview(memory), memoryview(array("d", [0.0] * SIZE))
window, group = MPI.Win.Create(memory, comm=comm), comm.Get_group().Incl([peer])


def compute(block):
    end = MPI.Wtime() + 1e-3 + 1e-9 * block
    while MPI.Wtime() < end:
        pass


# CURES

for number, (cure, has_epoch, receives) in enumerate(CURES):
    for i in range(SIZE):
        into[i], out[i] = -1, i * (2 - peer) + number
    comm.Barrier()
    if has_epoch:
        window.Post(group)
    cure()
    if has_epoch:
        window.Wait()
    if receives:
        assert all(into[i] == i * (1 + peer) + number for i in range(SIZE)), cure.__name__
window.Free()
if peer == 1:
    print(f"{len(CURES)} cures")
