"""MPI loaded late: inside a function, long after Python has started, and with the loader's local scope.

Rows: one exchange of 64 bytes, by MPI_Wait.
"""

import ctypes  # noqa: F401  so that other objects are loaded in between


def communicate():
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    from mpi4py import MPI

    MPI.Init()
    world = MPI.COMM_WORLD
    out, into = bytearray(b"y" * 64), bytearray(64)
    receive = world.Irecv([into, MPI.BYTE], source=1 - world.rank, tag=2)
    send = world.Isend([out, MPI.BYTE], dest=1 - world.rank, tag=2)
    receive.Wait()
    send.Wait()
    assert into == out
    rank = world.rank
    MPI.Finalize()
    return rank


if communicate() == 0:
    print("late")
