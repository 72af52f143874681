"""Barriers from lines of Python of every kind. Each line is marked with its function and how often it is called: `# at NAME TIMES`.

Prints nothing but what all ranks have in common, so that it is the same with and without lapscope.
"""

import asyncio
import ctypes
import threading

from mpi4py import MPI

comm = MPI.COMM_WORLD
TIMES = 3


def two_lines():
    comm.Barrier()  # at two_lines 3
    comm.Barrier()  # at two_lines 3


def inner():
    comm.Barrier()  # at inner 3


def outer():
    def within():
        inner()

    within()


def generator():
    while True:
        comm.Barrier()  # at generator 3
        yield


async def coroutine():
    await asyncio.sleep(0)
    comm.Barrier()  # at coroutine 3


class Grid:
    def step(self):
        comm.Barrier()  # at step 3

    def __del__(self):
        comm.Barrier()  # at __del__ 3


def in_thread():
    comm.Barrier()  # at in_thread 3


def compare(a, b):
    """Called by qsort of the C library, which ctypes calls."""
    comm.Barrier()  # at compare 3
    return a[0] - b[0]


def sort_in_c():
    numbers = (ctypes.c_int * 2)(2, 1)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.POINTER(ctypes.c_int)] * 2)
    ctypes.CDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), kind(compare))
    return list(numbers)


def deep(levels):
    if levels:
        deep(levels - 1)
    else:
        comm.Barrier()  # at deep 3


shorter = lambda: comm.Barrier()  # at <lambda> 3


def made_anew():
    """Code objects that die, in whose place the next one is made: each has its own line."""
    for line in range(1, 5):
        source = "\n" * line + "comm.Barrier()"
        for _ in range(TIMES):
            exec(compile(source, "anew.py", "exec"), {"comm": comm})


def sorted_by_key():
    return sorted([2, 1], key=lambda number: (comm.Barrier(), number)[1])  # at <lambda> 6


def main():
    lines = generator()
    for _ in range(TIMES):
        two_lines()
        outer()
        next(lines)
        asyncio.run(coroutine())
        Grid().step()
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
        assert sort_in_c() == [1, 2]
        shorter()
        deep(40)
        assert sorted_by_key() == [1, 2]
    made_anew()
    if comm.rank == 0:
        print("passed", flush=True)


main()
