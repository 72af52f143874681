"""Hangs, rank by rank in another place. Marks say which ranks are inside of a line, and how far from the innermost one."""

import sys
import threading
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()


def waits_for_all():
    comm.Barrier()  # rank 0: 0


class Key:
    """Compared by the interpreter's sort, in C, which calls Python again."""

    def __lt__(self, other):
        return receives() < 0  # rank 1: 1


def receives():
    return comm.recv(source=0, tag=17)  # rank 1: 0


def computes():
    x = 0.3
    while True: x = 3.7 * x * (1.0 - x)  # rank 2: 0


def steps():
    while True:
        time.sleep(3600)  # rank 3: 0
        yield


def idles():
    time.sleep(3600)


def run():
    if rank == 0:
        waits_for_all()  # rank 0: 1
    elif rank == 1:
        sorted([Key(), Key()])  # rank 1: 2
    elif rank == 2:
        computes()  # rank 2: 1
    else:
        for _ in steps():  # rank 3: 1
            pass


threading.Thread(target=idles, daemon=True).start()
sys.stderr.write(f"here {rank}\n")
sys.stderr.flush()
run()  # rank 0: 2, rank 1: 3, rank 2: 2, rank 3: 2
