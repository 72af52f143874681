#!/usr/bin/env python3
"""How much of what changes of an application win is won without them, by injection and by copied sends: `tests/bench/run.sh ghost`
and `tests/bench/run.sh copies`, parts of `make bench`.

    tests/bench/ghost.py DIRECTORY PRELOAD injected|copied

DIRECTORY holds examples/ghost_cells compiled as ghost_cells.NAME for each MPI. Run in turn are its plain form, bare and injected, and
its form with tests (strategy 1 of [SP04]); or its plain form, bare and with copied sends, and its form with one MPI_Waitall (strategy
2). They are compared within a turn only. Printed are medians over turns, in brackets the first and third quartile.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from inject import LAUNCHERS, NAMES, OVER_TCP, SLOW_LINK, load, slow_link_front, spread

TURNS = 5
STEPS = 80
TIMEOUT_S = 60


@dataclass(frozen=True)
class Way:
    """How the program is run."""

    name: str
    form: str
    inject: str = ""
    copied: str = ""

    def is_plain(self):
        return not self.inject and not self.copied


PLAIN = Way("plain", "plain")
TESTS = Way("tests by hand", "test")
WAITALL = Way("one Waitall", "waitall")
# what is run, and by hand what the others are compared with
INJECTED = [PLAIN, Way("plain, timer", "plain", "timer"), Way("plain, thread", "plain", "thread"), TESTS, WAITALL], TESTS
COPIED = [PLAIN, Way("plain, copied", "plain", copied="1m"), WAITALL], WAITALL


@dataclass(frozen=True)
class Link:
    """An MPI, the size of messages, and whether they take the slow link."""

    mpi: str
    size: str
    is_slow: bool

    def name(self):
        return f"{NAMES[self.mpi]}, {'TCP at 1600 Mbit/s' if self.is_slow else 'shared memory'}, {self.size}"


def execute(directory, preload, link, way, front):
    """The row of the table of steps as a dictionary of numbers; None, said on standard error, when the run fails."""
    line = [*LAUNCHERS[link.mpi], "-n", "2"]
    records = directory / "run"
    environment = {"LAPSCOPE_DIR": str(records), "LAPSCOPE_QUIET": "on", "LAPSCOPE_INJECT": way.inject or "off",
                   "LAPSCOPE_BUFFER_SENDS": way.copied or "0"}
    if not way.is_plain():
        line += ["env", f"LD_PRELOAD={preload}"]
    line += [str(directory / f"ghost_cells.{link.mpi}"), "-f", way.form, "-b", link.size, "-i", str(STEPS)]
    if link.is_slow:
        line = [*front, "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh", *line]
        environment |= OVER_TCP
    done = subprocess.run(
        ["timeout", "-k", "10", str(TIMEOUT_S), *line],
        env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )
    shutil.rmtree(records, ignore_errors=True)
    if done.returncode:
        print(f"FAILED ({done.returncode}): {' '.join(line)}\n{done.stdout}{done.stderr}", file=sys.stderr)
        return None
    lines = iter(done.stdout.splitlines())
    next(text for text in lines if text.startswith("table steps"))
    return {name: float(value) for name, value in zip(next(lines).split(), next(lines).split()) if value != "-"}


def turns(ways, *run):
    """Way -> its rows; the k-th of each are of one turn. Each turn begins with another way."""
    results = {way: [] for way in ways}
    for turn in range(TURNS):
        first = turn % len(ways)
        for way in ways[first:] + ways[:first]:
            results[way].append(execute(*run[:3], way, *run[3:]))
    return results


def recovered(results, way, by_hand, column):
    """What a way saves, in percent of what the change by hand saves, of each turn."""
    rows = zip(results[PLAIN], results[way], results[by_hand])
    return [100 * (a[column] - b[column]) / (a[column] - c[column]) for a, b, c in rows if a and b and c and a[column] != c[column]]


def print_link(results, by_hand):
    form = "{:.0f}"
    for way, rows in results.items():
        ms = {column: [row[column] / 1e3 for row in rows if row] for column in ("step_us", "communication_us")}
        text = f"  {way.name:14} {spread(ms['step_us'], '{:.2f}'):24} {spread(ms['communication_us'], '{:.2f}'):24} "
        if way not in (PLAIN, by_hand):
            won = [recovered(results, way, by_hand, column) for column in ("step_us", "communication_us")]
            text += f"{spread(won[0], form):24} {spread(won[1], form)}"
        print(text.rstrip(), flush=True)


def main():
    directory, preload = Path(sys.argv[1]), sys.argv[2]
    ways, by_hand = {"injected": INJECTED, "copied": COPIED}[sys.argv[3]]
    front = slow_link_front()
    links = [Link(mpi, "256K", False) for mpi in ("openmpi", "mpich")] + [Link("openmpi", "128K", True)]
    print(f"== ghost cells, {sys.argv[3]}: how much of what it wins by hand ({by_hand.name}) is won without a change? {load()}")
    print(f"  {'ms':14} {'a step':24} {'of it inside MPI':24} {'% of what is won of':24} % of what is won of\n"
          f"  {'':14} {'':24} {'':24} {'the step by hand':24} the time inside MPI")
    for link in links:
        if not (directory / f"ghost_cells.{link.mpi}").exists() or (link.is_slow and not front):
            print(f"{link.name()}: not measured, no such MPI, or network namespaces and tc are not permitted here")
            continue
        print(link.name())
        print_link(turns(ways, directory, preload, link, front), by_hand)
    print(f"  {load()}")


if __name__ == "__main__":
    main()
