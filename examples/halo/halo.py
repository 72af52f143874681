"""The halo exchange of halo.c with mpi4py and NumPy: post, compute the inner rows, wait, compute the outer ones.

    mpirun -n 2 python3 halo.py [--test] [CELLS ROWS STEPS]

Each rank has ROWS rows of CELLS cells, and a row of each neighbour around them; the ranks close to a ring. With --test it
asks for its requests after each block of rows, so that the messages move while it computes.
"""

import sys
from time import perf_counter

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
up, down = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
BLOCK = 2  # rows


def post_exchange(now):
    return [
        comm.Irecv(now[0], source=up, tag=1),
        comm.Irecv(now[-1], source=down, tag=2),
        comm.Isend(now[1], dest=up, tag=2),
        comm.Isend(now[-2], dest=down, tag=1),
    ]


def diffuse(now, then, first, behind):
    above, here, below = now[first - 1 : behind - 1], now[first:behind], now[first + 1 : behind + 1]
    then[first:behind] = here + 0.1 * (above + below - 2.0 * here)


def compute_inner(now, then, requests):
    last = len(now) - 2
    for first in range(2, last, BLOCK):
        diffuse(now, then, first, min(first + BLOCK, last))
        if testing:
            MPI.Request.Testall(requests)


def step(now, then):
    requests = post_exchange(now)
    compute_inner(now, then, requests)
    MPI.Request.Waitall(requests)
    diffuse(now, then, 1, 2)
    diffuse(now, then, len(now) - 2, len(now) - 1)


testing = "--test" in sys.argv
cells, rows, steps = [int(word) for word in sys.argv[1:] if word != "--test"] or (262144, 40, 40)
now = numpy.arange((rows + 2) * cells, dtype=float).reshape(rows + 2, cells) % (7.0 + comm.rank)
then = numpy.zeros_like(now)
comm.Barrier()
begin = perf_counter()
for _ in range(steps):
    step(now, then)
    now, then = then, now
seconds = comm.allreduce(perf_counter() - begin, op=MPI.MAX)
total = comm.allreduce(float(now[1:-1].sum()))
if comm.rank == 0:
    print(f"{1e3 * seconds / steps:.1f} ms a step, sum {total:.6e}")
