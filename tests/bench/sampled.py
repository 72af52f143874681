#!/usr/bin/env python3
"""What samples cost, and what a test in the line that they name brings: `tests/bench/run.sh sample`, a part of `make bench`.

    tests/bench/sampled.py cost DIRECTORY PRELOAD [TURNS]
    tests/bench/sampled.py gain DIRECTORY LAPSCOPE [TURNS]

DIRECTORY holds paced.NAME (paced.c) for each MPI for `cost`; runs are recorded there, too. PRELOAD is liblapscope.so, LAPSCOPE
the command.

`cost` runs the program recorded without samples and with them in turn, and compares run times within a turn. `gain` records examples/halo over a slow link with samples, has `lapscope report` name the
line, edits the program as `report --how` says it (a test in the loop around the computation, each so many seconds), and runs
both in turn. Printed are medians over turns, in brackets the first and third quartile. Each turn begins with another way.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from inject import OVER_TCP, ROOT, SLOW_LINK

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


# --- cost -------------------------------------------------------------------------------------------------------------


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


# --- gain -------------------------------------------------------------------------------------------------------------

POST = "    post_exchange(b, requests);\n    double posted = MPI_Wtime();\n    compute_interior(b, steps);\n"
LOOP = "    for (int y = 2; y < b->ny; y++)\n        update_row(b, y, steps);\n"
TESTED = """    double last = MPI_Wtime();
    for (int y = 2; y < b->ny; y++) {{
        update_row(b, y, steps);
        if (MPI_Wtime() - last > {seconds}) {{
            int done;
            MPI_Testall(REQUESTS, tested, &done, MPI_STATUSES_IGNORE);
            last = MPI_Wtime();
        }}
    }}
"""


def edited(source, seconds):
    """halo.c with the snippet of `report --how` in the loop around the named line. The requests have to be known there."""
    for known in (POST, LOOP):
        if known not in source:
            sys.exit(f"examples/halo/halo.c is not what it was: no\n{known}")
    source = source.replace(LOOP, TESTED.format(seconds=seconds))
    source = source.replace(
        "static void compute_interior(struct block *b, int steps)\n",
        "static MPI_Request *tested, none[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};\n"
        "enum { REQUESTS = 4 };\nstatic void compute_interior(struct block *b, int steps)\n",
    )
    source = source.replace("enum { UPWARD, DOWNWARD, REQUESTS = 4 };", "enum { UPWARD, DOWNWARD };")
    source = source.replace(POST, POST.replace("    compute_interior", "    tested = requests;\n    compute_interior"))
    return source.replace("    MPI_Init(&argc, &argv);\n", "    MPI_Init(&argc, &argv);\n    tested = none;\n")


def over_slow_link(line, more=None, limit=TIMEOUT_S):
    inside = ["unshare", "-n", "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh"]
    return run([*inside, *map(str, line)], {**OVER_TCP, **(more or {})}, limit)


def iteration_ms(printed):
    return float(re.search(r"an iteration: ([0-9.]+) ms", printed).group(1))


def gain(directory, lapscope, turns):
    if subprocess.run(["unshare", "-n", "sh", "-c", SLOW_LINK], capture_output=True, check=False).returncode != 0:
        print("== gain: a slow link of its own is not permitted here")
        return
    source = (ROOT / "examples/halo/halo.c").read_text()
    compiler = ["mpicc.openmpi", "-std=gnu11", "-O2", "-g"]
    run([*compiler, "-o", str(directory / "halo"), str(ROOT / "examples/halo/halo.c"), "-lm"])
    launch = ["mpirun.openmpi", "-n", "2"]
    steps = re.search(r"([0-9]+) steps a cell", over_slow_link([*launch, directory / "halo"])).group(1)
    calibrations = {"LAPSCOPE_CALIBRATION_DIR": str(directory / "calibrations")}
    over_slow_link([lapscope, "calibrate", "--", *launch], calibrations)
    recorded = directory / "halo.run"
    shutil.rmtree(recorded, ignore_errors=True)
    record = [lapscope, "run", "--quiet", "--sample=1000", "--dir", recorded, "--", *launch, directory / "halo", "-s", steps]
    over_slow_link(record, calibrations)
    report = json.loads(run([lapscope, "report", "--format", "json", str(recorded)], calibrations))
    advice = next((it for it in report["advice"] if it["cure"] == "test" and it["computes"]), None)
    if not advice:
        sys.exit(f"no advice to test with lines: {json.dumps(report['advice'], indent=1)}")
    place = advice["computes"]["lines"][0]["place"]
    if place["function"] != "update_row":
        sys.exit(f"another line than that of update_row is named: {advice['computes']['sentence']}")
    how = run([lapscope, "report", "--how", str(recorded)], calibrations)
    seconds = re.search(r"MPI_Wtime\(\) - last > ([0-9.e-]+)", how).group(1)
    (directory / "halo_tested.c").write_text(edited(source, seconds))
    run([*compiler, "-o", str(directory / "halo_tested"), str(directory / "halo_tested.c"), "-lm"])
    times = {"halo": [], "halo_tested": []}
    for turn in range(turns):
        names = list(times)[:: 1 if turn % 2 else -1]
        for name in names:
            times[name].append(iteration_ms(over_slow_link([*launch, directory / name, "-s", steps])))
    saved = [(a - b) / a * 100 for a, b in zip(times["halo"], times["halo_tested"])]
    bounds = report["bounds"] or {}
    best = bounds.get("perfect_progress_ns")
    print(f"== gain: halo over the slow link; load {os.getloadavg()[0]}; {advice['computes']['sentence']}")
    print("  | | |\n  |---|---|")
    print(f"  | line that samples name | `{place['function']} halo.c:{place['line']}`, {advice['computes']['lines'][0]['share']:.0%} |")
    print(f"  | at stake | {advice['share']:.1%} of the run time |")
    if best:
        print(f"  | best progress, replayed | {1 - best / bounds['recorded_ns']:.1%} less |")
    print(f"  | an iteration as it was, ms | {spread(times['halo'])} |")
    print(f"  | with the test, each {seconds} s | {spread(times['halo_tested'])} |")
    print(f"  | saved, percent | {spread(saved)} |")


def main():
    what, directory, tool, *rest = sys.argv[1:]
    turns = int(rest[0]) if rest else 9
    {"cost": cost, "gain": gain}[what](Path(directory), tool, turns)


if __name__ == "__main__":
    main()
