#!/usr/bin/env python3
"""What LAPSCOPE_INJECT=auto brings and costs: `tests/bench/run.sh auto`, a part of `make bench`.

    tests/bench/auto.py DIRECTORY PRELOAD [TURNS]

DIRECTORY holds tests/apps/gain.c compiled as gain.NAME for each MPI; runs are recorded there, too. PRELOAD is liblapscope.so.

Two ranks exchange messages and compute beside them. Of each program all ways are run in turn, again and again, and compared
within a turn only; each turn starts with another way. Nothing is recorded (LAPSCOPE_RECORD=off). Printed are medians over
turns, in brackets the least and the greatest.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from inject import LAUNCHERS, NAMES, OVER_TCP, SLOW_LINK, load, slow_link_front  # noqa: E402

TIMEOUT_S = 180
BARE = "bare"
WAYS = {
    BARE: None,
    "auto": {"LAPSCOPE_INJECT": "auto"},
    "timer, 1 ms": {"LAPSCOPE_INJECT": "timer"},
    "timer, 0.25 ms": {"LAPSCOPE_INJECT": "timer", "LAPSCOPE_INJECT_INTERVAL_US": "250"},
    "calls, 0.25 ms": {"LAPSCOPE_INJECT": "calls", "LAPSCOPE_INJECT_INTERVAL_US": "250"},
    "timer, 20 us, no budget": {
        "LAPSCOPE_INJECT": "timer", "LAPSCOPE_INJECT_INTERVAL_US": "20", "LAPSCOPE_INJECT_BUDGET": "100",
        "LAPSCOPE_INJECT_MIN_BYTES": "0",
    },
}
# words, MPI, over the slow link, bytes, milliseconds of work, iterations, processes that take processors away
PROGRAMS = [
    ("slow link, 1 MB beside 8 ms", "openmpi", True, 1 << 20, 8, 600, 0),
    ("slow link, 256 KB beside 3 ms", "openmpi", True, 1 << 18, 3, 1200, 0),
    ("slow link, 1 MB beside 8 ms, processors busy", "openmpi", True, 1 << 20, 8, 200, 2),
    ("shared memory, 1 MB beside 4 ms", "openmpi", False, 1 << 20, 4, 1000, 0),
    ("shared memory, 1 MB beside 4 ms", "mpich", False, 1 << 20, 4, 1000, 0),
    ("shared memory, 1 KB beside 1 ms", "mpich", False, 1000, 1, 3000, 0),
]


class Bench:
    def __init__(self, directory, preload):
        self.directory = Path(directory)
        self.preload = preload
        self.unshare = slow_link_front()
        self.rounds = {}

    def execute(self, mpi, slow, arguments, variables):
        """What gain printed, as a dictionary; the program is run with lapscope where there are variables."""
        before = ["env", f"LD_PRELOAD={self.preload}"] if variables is not None else []
        line = [*LAUNCHERS[mpi], "-n", "2", *before, str(self.directory / f"gain.{mpi}"), *map(str, arguments)]
        environment = {"LAPSCOPE_DIR": str(self.directory / "auto-run"), "LAPSCOPE_QUIET": "on", "LAPSCOPE_RECORD": "off"}
        environment |= {"OMPI_MCA_mpi_yield_when_idle": "0"} | (variables or {})
        if slow:
            line = [*self.unshare, "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh", *line]
            environment |= OVER_TCP
        done = subprocess.run(
            ["timeout", "-k", "10", str(TIMEOUT_S), *line],
            env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        if done.returncode != 0:
            sys.exit(f"FAILED ({done.returncode}): {' '.join(line)}\n{done.stdout}{done.stderr}")
        words = done.stdout.split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def rounds_of(self, mpi):
        """How much work a millisecond is: the most of several findings, as others may run."""
        if mpi not in self.rounds:
            self.rounds[mpi] = max(self.execute(mpi, False, (8, 0, 1), None)["rounds"] for _ in range(3))
        return self.rounds[mpi]

    def run(self, program, way):
        """Nanoseconds an iteration, and rank 0's page under auto."""
        _, mpi, slow, size, work_ms, iterations, others = program
        spinning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(others)]
        try:
            took = self.execute(mpi, slow, (size, work_ms, iterations, self.rounds_of(mpi)), WAYS[way])["iteration"]
        finally:
            for process in spinning:
                process.kill()
                process.wait()
        pages = [json.loads(line) for file in (self.directory / "auto-run").glob("auto-*.jsonl") for line in file.open()]
        shutil.rmtree(self.directory / "auto-run", ignore_errors=True)
        return took, min(pages, key=lambda page: page["rank"], default=None)


def spread(values, form):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))} .. {form.format(max(values))})"


def decided(pages):
    """What was in force at the end of these runs, after how many seconds it was decided, and what that gained."""
    kept = [page for page in pages if page["in_force"]]
    if not kept:
        events = sorted({page["decisions"][-1]["what"] if page["decisions"] else "asleep" for page in pages})
        return f"in none of {len(pages)} something in force: {', '.join(events)}"
    arms = sorted({"{mode} {interval_us} us".format(**page["arms"][page["in_force"]]) for page in kept})
    after = [next(row["at"] for row in page["decisions"] if row["what"] == "keep") for page in kept]
    return (
        f"in {len(kept)} of {len(pages)} in force: {', '.join(arms)}; after {statistics.median(after):.1f} s; "
        f"said to gain {100 * statistics.median(page['gain']['share'] for page in kept):.1f} %"
    )


def measure(bench, program, turns):
    words, mpi, slow, _, work_ms, iterations, _ = program
    if not (bench.directory / f"gain.{mpi}").exists() or (slow and not bench.unshare):
        print(f"  {words}, {NAMES[mpi]}: not measured, as it cannot be run here")
        return
    results = {way: [] for way in WAYS}
    ways = list(WAYS)
    for turn in range(turns):
        first = turn % len(ways)
        for way in ways[first:] + ways[:first]:
            results[way].append(bench.run(program, way))
    print(f"  {words}, {NAMES[mpi]}, {iterations} iterations; {load()}")
    bare = [took for took, _ in results[BARE]]
    print(f"    {'bare':24} {spread([took / 1e6 for took in bare], '{:.2f}')} ms an iteration")
    for way in ways[1:]:
        ratios = [took / other for (took, _), other in zip(results[way], bare)]
        print(f"    {way:24} {spread(ratios, '{:.3f}')} of bare")
    print(f"    auto: {decided([page for _, page in results['auto'] if page])}", flush=True)


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print(f"== LAPSCOPE_INJECT=auto against fixed settings, {turns} turns; {load()}")
    for program in PROGRAMS:
        measure(bench, program, turns)


if __name__ == "__main__":
    main()
