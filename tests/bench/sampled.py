#!/usr/bin/env python3
"""What samples cost: `tests/bench/run.sh sample`, a part of `make bench`.

    tests/bench/sampled.py DIRECTORY PRELOAD [TURNS]

DIRECTORY holds paced.NAME (paced.c) for each MPI; runs are recorded there, too. PRELOAD is liblapscope.so. The program is run
recorded without samples and with them in turn, each turn beginning with another way, and run times are compared within a
turn. Printed are medians over turns, in brackets the first and third quartile.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

TIMEOUT_S = 300
RATES = (199, 1000, 10000)


def spread(values):
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.4g} [{low:.4g}, {high:.4g}]"


def run(line, more=None, limit=TIMEOUT_S, **options):
    environment = {**os.environ, **(more or {})}
    done = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=limit, check=False, **options
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, line))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


ROUNDS = 500


def run_time(mpi, directory, preload, rate):
    """Seconds of wall-clock time."""
    recorded = directory / "run"
    shutil.rmtree(recorded, ignore_errors=True)
    environment = {
        "LD_PRELOAD": str(preload),
        "LAPSCOPE_DIR": str(recorded),
        "LAPSCOPE_QUIET": "on",
        "LAPSCOPE_CONVERT": "off",
        "LAPSCOPE_SAMPLE": str(rate),
    }
    names = [f"{name}={value}" for name, value in environment.items()]
    begin = time.monotonic()
    run([f"mpirun.{mpi}", "-n", "1", "env", *names, str(directory / f"paced.{mpi}"), str(ROUNDS)])
    return time.monotonic() - begin


def cost(directory, preload, turns):
    print("== run time added by samples, in percent of the run recorded without any; load", os.getloadavg()[0])
    for mpi in ("openmpi", "mpich"):
        if not (directory / f"paced.{mpi}").exists():
            continue
        added = {rate: [] for rate in (0, *RATES)}
        for turn in range(turns):
            order = (0, 0, *RATES)  # without against itself: what chance makes of it
            order = order[turn % len(order) :] + order[: turn % len(order)]
            measured = [(rate, run_time(mpi, directory, preload, rate)) for rate in order]
            without = [seconds for rate, seconds in measured if rate == 0]
            for rate, seconds in measured:
                if rate:
                    added[rate].append((seconds / statistics.mean(without) - 1) * 100)
            added[0].append((without[0] / without[1] - 1) * 100)
        for rate, values in added.items():
            print(f"  {mpi:8} {rate or 'without, again':>14}: {spread(values)} %")


def main():
    directory, preload, *rest = sys.argv[1:]
    cost(Path(directory), preload, int(rest[0]) if rest else 9)


if __name__ == "__main__":
    main()
