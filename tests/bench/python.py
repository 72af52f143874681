#!/usr/bin/env python3
"""What lines of Python in call paths cost: `tests/bench/run.sh python`, a part of `make bench`.

    tests/bench/python.py PRELOAD MPI

For each Python in build/mpi: nanoseconds a call of mpi4py, from ten functions deep, alone (bare); what recording adds with call
paths of native frames alone; and what lines of Python add to that. Each is the least of many blocks of calls, the ways in turn.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = 5
ROOT = Path(__file__).resolve().parents[2]
CALLS = {"openmpi": "mpirun.openmpi", "mpich": "mpirun.mpich"}
PROGRAM = """
import sys
from time import perf_counter_ns
from mpi4py import MPI

comm, window = MPI.COMM_SELF, 1000
into, out = bytearray(8), bytearray(8)

def block(levels):
    if levels:
        return block(levels - 1)
    start = perf_counter_ns()
    for _ in range(window):
        receive = comm.Irecv([into, MPI.BYTE])
        comm.Send([out, MPI.BYTE], 0)
        receive.Wait()
    return (perf_counter_ns() - start) / (3 * window)

print(min(block(int(sys.argv[1]) - 2) for _ in range(40)))
"""
WAYS = {"bare": None, "native": "off", "lines": "on"}


def least(python, mpi, preload, way, levels):
    environment = dict(os.environ, MPI4PY_MPIABI=mpi, LAPSCOPE_QUIET="on", LAPSCOPE_CONVERT="off")
    environment["LD_LIBRARY_PATH"] = str(ROOT / "build/mpi/mpich/lib") if mpi == "mpich" else ""
    line = [CALLS[mpi], "-n", "1", "env"]
    with tempfile.TemporaryDirectory() as directory:
        if WAYS[way]:
            line += [f"LD_PRELOAD={preload}", f"LAPSCOPE_DIR={directory}/run", f"LAPSCOPE_CALLPATH_PYTHON={WAYS[way]}"]
        line += [python, "-c", PROGRAM, str(levels)]
        ran = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return float(ran.stdout) if ran.returncode == 0 else None


def main():
    preload, mpi = sys.argv[1:]
    for python in sorted(ROOT.glob("build/mpi/python*/bin/python"), key=lambda path: (len(str(path)), path)):
        taken = {way: [] for way in WAYS}
        for _ in range(TURNS):
            for way in WAYS:
                taken[way].append(least(python, mpi, preload, way, 10))
        if any(None in values for values in taken.values()):
            print(f"  {mpi:8} {python.parent.parent.name:14} failed")
            continue
        bare, native, lines = (min(taken[way]) for way in WAYS)
        print(f"  {mpi:8} {python.parent.parent.name:14} mpi4py {bare:5.0f}, recorded {native - bare:+5.0f}, "
              f"lines of Python {lines - native:+5.0f} ns a call")


main()
