#!/usr/bin/env python3
"""What recording when GPUs work costs: `tests/bench/run.sh gpu`, a part of `make bench`.

    tests/bench/gpu.py DIRECTORY PRELOAD [TURNS]

DIRECTORY holds gpu_work.NAME for each MPI, and libcuda.so.1, a stand-in for CUDA's driver and CUPTI (tests/apps). The program, of
10,000 kernels a second and rank, is run recorded without the plugin and with it in turn. Printed are medians over turns of
run times compared within a turn, in brackets the first and third quartile.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from sampled import run, spread

WORK = ("30", "500", "200000", "1000")  # 500 kernels of 200 us on two streams, thirty times


def run_time(mpi, directory, preload, is_on):
    """Seconds of wall-clock time."""
    recorded = directory / "run"
    shutil.rmtree(recorded, ignore_errors=True)
    plugin = preload.with_name("liblapscope-cuda.so")
    environment = {
        "LD_PRELOAD": str(preload),
        "LAPSCOPE_DIR": str(recorded),
        "LAPSCOPE_QUIET": "on",
        "LAPSCOPE_CONVERT": "off",
        "GPU_DRIVER": str(directory / "libcuda.so.1"),
        "CUDA_HOME": str(directory / "cuda"),
        "CUDA_INJECTION64_PATH": str(plugin) if is_on else "",
    }
    names = [f"{name}={value}" for name, value in environment.items()]
    begin = time.monotonic()
    run([f"mpirun.{mpi}", "-n", "2", "env", *names, str(directory / f"gpu_work.{mpi}"), *WORK])
    return time.monotonic() - begin


def main():
    directory, preload = Path(sys.argv[1]), Path(sys.argv[2])
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    extras = directory / "cuda/extras/CUPTI/lib64"
    extras.mkdir(parents=True, exist_ok=True)
    if not (extras / "libcupti.so.12").exists():
        os.link(directory / "libcuda.so.1", extras / "libcupti.so.12")
    print("== run time added by recording 10,000 kernels a second, in percent; load", os.getloadavg()[0])
    for mpi in ("openmpi", "mpich"):
        if not (directory / f"gpu_work.{mpi}").exists():
            continue
        added, chance = [], []
        for turn in range(turns):
            order = [False, True, False] if turn % 2 else [False, False, True]
            measured = [(is_on, run_time(mpi, directory, preload, is_on)) for is_on in order]
            without = [seconds for is_on, seconds in measured if not is_on]
            seconds = next(seconds for is_on, seconds in measured if is_on)
            added.append(100 * (2 * seconds / sum(without) - 1))
            chance.append(100 * (without[1] / without[0] - 1))
        print(f"  {mpi:8} {spread(added)} %; without against itself {spread(chance)} %")


main()
