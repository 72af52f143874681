#!/usr/bin/env python3
"""What `lapscope tune` finds for a Python program that tests by hand make faster: `tests/bench/run.sh tune`, of `make bench`.

    tests/bench/tuned.py DIRECTORY LAPSCOPE PYTHON [TURNS]

examples/halo/halo.py over a slow link under Open MPI, with the mpi4py and NumPy of PYTHON. Printed are the gains, from launch
to end, of tests by hand (--test), of the setting that tune names, as tune says it, and of the same setting in whole runs made
afterwards, in turn with bare ones: medians over turns, in brackets the least and the most. On a machine with other work they
are no more than a hint.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

from inject import ROOT
from followed import over_slow_link

STEPS = (65536, 40, 160)
SEARCH_S = 1800


def launch(python, *words):
    return ["mpirun.openmpi", "-n", "2", python, ROOT / "examples/halo/halo.py", *words, *STEPS]


def seconds(line, more=None):
    begin = time.monotonic()
    printed = over_slow_link(line, more)
    return time.monotonic() - begin, printed.split("sum")[1]


def in_turn(turns, lines):
    """Gains of each further line against the first, by turns; all have computed the same."""
    gains = [[] for _ in lines[1:]]
    for turn in range(turns):
        order = list(range(len(lines)))
        order = order[turn % len(order) :] + order[: turn % len(order)]
        taken = {at: seconds(*lines[at]) for at in order}
        if len({computed for _, computed in taken.values()}) != 1:
            sys.exit(f"results differ: {taken}")
        for at, gained in enumerate(gains, 1):
            gained.append(100 * (1 - taken[at][0] / taken[0][0]))
    return gains


def spread(values):
    return f"{statistics.median(values):.1f} % [{min(values):.1f}, {max(values):.1f}]"


def setting(best):
    return f"{best['mode']} every {best['interval_us']} us"


def main():
    directory, lapscope, python, *rest = sys.argv[1:]
    turns = int(rest[0]) if rest else 5
    print(f"== what tune finds for halo.py over a slow link, {turns} turns; load {os.getloadavg()[0]}")
    kept = ["--dir", Path(directory) / "tuned", "--policy", Path(directory) / "policy"]
    found = json.loads(over_slow_link([lapscope, "tune", "--format", "json", *kept, "--", *launch(python)], limit=SEARCH_S))
    best = found["best"]
    for run in found["runs"]:
        whole = run["whole"] or {}
        gain = "-" if whole.get("estimate") is None else f"{100 * whole['estimate']:.1f} %"
        print(f"  run {run['run']:18} gain {gain}, {run['tests']} tests, {run['found']} of them moved something")
    for note in found["notes"]:
        print(f"  to know: {note}")
    lines = [(launch(python),), (launch(python, "--test"),)]
    if best:
        chosen = {variable["name"]: variable["value"] for variable in best["environment"]}
        lines.append(([lapscope, "run", "--dir", Path(directory) / "applied", "--", *launch(python)], chosen))
    by_hand, *applied = in_turn(turns, lines)
    print(f"  by hand             {spread(by_hand)}")
    if not best:
        print(f"  tune                {found['found']}")
        return
    said = found["confirmation"]["gain"] if found["confirmation"] else best["slots_gain"]
    print(f"  tune: {found['found']}, {setting(best)}")
    print(f"  as tune says it     {100 * said['estimate']:.1f} % [{100 * said['low']:.1f}, {100 * said['high']:.1f}]")
    print(f"  in whole runs then  {spread(applied[0])}")


if __name__ == "__main__":
    main()
