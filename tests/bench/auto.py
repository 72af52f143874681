#!/usr/bin/env python3
"""What LAPSCOPE_INJECT=auto brings and costs: `tests/bench/run.sh auto`, a part of `make bench`.

    tests/bench/auto.py DIRECTORY PRELOAD [TURNS [WORDS]]

DIRECTORY holds programs compiled as NAME.MPI (tests/apps/gain.c, examples/ghost_cells, tests/bench/amg.c where hypre is); runs
are recorded there, too. PRELOAD is liblapscope.so. With WORDS only programs whose name has them. LAMMPS, HPCC and Quantum
ESPRESSO are Debian's.

Of each program, on two ranks, all ways are run in turn, again and again, and compared within a turn only; each turn starts with
another way. Nothing is recorded (LAPSCOPE_RECORD=off). What is compared has auto's learning in it. The fixed settings are those
among which `lapscope tune` chooses, so that the best of them, known only afterwards, is what tune can find at best; the worst has
no bound on its cost. Printed are medians over turns, in brackets the least and the greatest.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from inject import LAUNCHERS, NAMES, OVER_TCP, ROOT, SLOW_LINK, load, slow_link_front  # noqa: E402

TIMEOUT_S = 300
BARE, AUTO, WORST = "bare", "auto", "timer, 20 us, no budget"


def fixed(mode, interval_us):
    return {"LAPSCOPE_INJECT": mode, "LAPSCOPE_INJECT_INTERVAL_US": str(interval_us)}


CHOICES = {
    "timer, 1 ms": fixed("timer", 1000),
    "timer, 0.25 ms": fixed("timer", 250),
    "calls, 0.25 ms": fixed("calls", 250),
    "thread, 1 ms": fixed("thread", 1000),
}
WORST_SETTING = fixed("timer", 20) | {"LAPSCOPE_INJECT_BUDGET": "100", "LAPSCOPE_INJECT_MIN_BYTES": "0"}
WAYS = {BARE: None, AUTO: {"LAPSCOPE_INJECT": "auto"}, **CHOICES, WORST: WORST_SETTING}
# in long runs: those that were the best of all somewhere, and the worst
LONG = {way: WAYS[way] for way in (BARE, AUTO, "timer, 1 ms", "thread, 1 ms", WORST)}
# where nothing is to be gained the fixed settings differ in what they cost, and the worst tells that
LITTLE = {way: WAYS[way] for way in (BARE, AUTO, "timer, 1 ms", WORST)}


@dataclass(frozen=True)
class Program:
    """What is run."""

    name: str
    line: tuple
    mpi: str = "openmpi"
    is_slow: bool = False
    # word in front of the number on standard output that says how long a step took; none: the run is timed from launch to end
    says: str = ""
    others: int = 0  # processes that take processors away
    ways: dict = field(default_factory=lambda: WAYS)
    # the program's own number of rounds a millisecond, so that all runs do the same
    has_rounds: bool = False

    def words(self):
        parts = [self.name, NAMES[self.mpi], "slow link" if self.is_slow else "shared memory"]
        return ", ".join(parts + (["processors busy"] if self.others else []))


def gain(name, size, work_ms, iterations, **options):
    return Program(name, ("gain", size, work_ms, iterations), says="iteration", has_rounds=True, **options)


STENCIL = "stencil, 1 MB beside 8 ms"
AMG = ("amg", 256, 6, 500)
GHOST = ("ghost_cells", "-f", "plain", "-b", "512K", "-l", "20000,2000", "-i", 2000)
SHORT_AMG, SHORT_GHOST = (*AMG[:-1], 150), (*GHOST[:-1], 400)
PROGRAMS = [
    gain(STENCIL, 1 << 20, 8, 3000, is_slow=True, ways=LONG),
    Program("AMG", AMG, is_slow=True, says="cycle", ways=LONG),
    Program("ghost_cells", GHOST, is_slow=True, ways=LONG),
    Program("LAMMPS", ("lmp", "-in", "melt.in", "-log", "none"), is_slow=True, ways=LITTLE),
    Program("HPCC", ("hpcc",), is_slow=True, ways=LITTLE),
    Program("Quantum ESPRESSO", ("pw.x", "-in", "hydrogen.pw"), is_slow=True, ways=LITTLE),
    gain(STENCIL, 1 << 20, 8, 300, is_slow=True, others=2),
    gain("stencil, 1 MB beside 4 ms", 1 << 20, 4, 1500, ways=LITTLE),
    gain("stencil, 1 MB beside 4 ms", 1 << 20, 4, 1500, mpi="mpich", ways=LITTLE),
    gain("stencil, 1 MB beside 4 ms", 1 << 20, 4, 500, others=2, ways=LITTLE),
    gain("eager, 1 KB beside 1 ms", 1000, 1, 5000, ways=LITTLE),
    gain("eager, 1 KB beside 1 ms", 1000, 1, 5000, mpi="mpich", ways=LITTLE),
    Program("AMG", SHORT_AMG, says="cycle", ways=LITTLE),
    Program("ghost_cells", SHORT_GHOST, ways=LITTLE),
    Program("LAMMPS", ("lmp", "-in", "melt.in", "-log", "none"), ways=LITTLE),
    Program("HPCC", ("hpcc",), ways=LITTLE),
    Program("Quantum ESPRESSO", ("pw.x", "-in", "hydrogen.pw"), ways=LITTLE),
]


def prepare(place):
    """Inputs of Debian's programs: those of the tests, larger."""
    apps = ROOT / "tests/apps"

    def enlarged(name, *changes):
        text = (apps / name).read_text()
        for old, new in changes:
            if old not in text:
                sys.exit(f"{name} has no {old!r}")
            text = text.replace(old, new)
        (place / name).write_text(text)

    place.mkdir()
    enlarged("melt.in", ("0 10 0 10 0 10", "0 20 0 20 0 20"), ("100\n", "400\n"))
    enlarged("hpccinf.txt", ("\n240 ", "\n2000 "), ("\n40           NBs", "\n80           NBs"))
    enlarged("hydrogen.pw", ("ecutwfc=15.0", "ecutwfc=60.0"), ("celldm(1)=8.0", "celldm(1)=32.0"))
    if shutil.which("ld1.x"):
        subprocess.run("ld1.x <" + str(apps / "hydrogen.ld1"), shell=True, cwd=place, stdout=subprocess.DEVNULL, check=True)


class Bench:
    def __init__(self, directory, preload):
        self.directory = Path(directory)
        self.place = self.directory / "place"
        self.preload = preload
        self.unshare = slow_link_front()
        self.rounds = {}
        prepare(self.place)

    def executable(self, program):
        """None: it is not here."""
        own = self.directory / f"{program.line[0]}.{program.mpi}"
        return str(own) if own.exists() else shutil.which(program.line[0])

    def execute(self, program, arguments, variables):
        """Seconds from launch to end, and what was printed; the program is run with lapscope where there are variables."""
        before = ["env", f"LD_PRELOAD={self.preload}"] if variables is not None else []
        line = [*LAUNCHERS[program.mpi], "-n", "2", *before, self.executable(program), *map(str, arguments)]
        environment = {"LAPSCOPE_DIR": str(self.directory / "auto-run"), "LAPSCOPE_QUIET": "on", "LAPSCOPE_RECORD": "off"}
        environment |= {"OMPI_MCA_mpi_yield_when_idle": "0", "OMP_NUM_THREADS": "1"} | (variables or {})
        if program.is_slow:
            line = [*self.unshare, "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh", *line]
            environment |= OVER_TCP
        began = time.monotonic()
        done = subprocess.run(
            ["timeout", "-k", "10", str(TIMEOUT_S), *line], cwd=self.place,
            env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        took = time.monotonic() - began
        if done.returncode != 0:
            sys.exit(f"FAILED ({done.returncode}): {' '.join(line)}\n{done.stdout}{done.stderr}")
        return took, done.stdout

    def rounds_of(self, mpi):
        """How much work a millisecond is: the most of several findings, as others may run."""
        if mpi not in self.rounds:
            probe = Program("probe", ("gain",), mpi=mpi)
            found = [number_behind("rounds", self.execute(probe, (8, 0, 1), None)[1]) for _ in range(3)]
            self.rounds[mpi] = int(max(found))
        return self.rounds[mpi]

    def run(self, program, way):
        """How long it took, and rank 0's page under auto."""
        arguments = [*program.line[1:], *([self.rounds_of(program.mpi)] if program.has_rounds else [])]
        spinning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(program.others)]
        try:
            seconds, output = self.execute(program, arguments, program.ways[way])
        finally:
            for process in spinning:
                process.kill()
                process.wait()
        took = number_behind(program.says, output) if program.says else seconds
        pages = [json.loads(line) for file in (self.directory / "auto-run").glob("auto-*.jsonl") for line in file.open()]
        shutil.rmtree(self.directory / "auto-run", ignore_errors=True)
        return took, seconds, min(pages, key=lambda page: page["rank"], default=None)


def number_behind(word, text):
    return float(re.search(rf"\b{word} (\S+)", text)[1])


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
    if not bench.executable(program) or (program.is_slow and not bench.unshare):
        print(f"  {program.words()}: not measured, as it cannot be run here")
        return
    results = {way: [] for way in program.ways}
    ways = list(program.ways)
    for turn in range(turns):
        first = turn % len(ways)
        for way in ways[first:] + ways[:first]:
            results[way].append(bench.run(program, way))
    print(f"  {program.words()}; {load()}")
    bare = [took for took, _, _ in results[BARE]]
    print(f"    {BARE:24} {spread([seconds for _, seconds, _ in results[BARE]], '{:.1f}')} s")
    ratios = {way: [took / other for (took, _, _), other in zip(results[way], bare)] for way in ways[1:]}
    for way in ways[1:]:
        print(f"    {way:24} {spread(ratios[way], '{:.3f}')} of bare")
    best = min((way for way in ways if way in CHOICES), key=lambda way: statistics.median(ratios[way]))
    if statistics.median(ratios[best]) < 0.9:
        shares = [100 * (1 - auto) / (1 - other) for auto, other in zip(ratios[AUTO], ratios[best]) if other < 1]
        print(f"    auto has {spread(shares, '{:.0f}')} % of what the best fixed setting gains ({best})")
    print(f"    auto: {decided([page for _, _, page in results[AUTO] if page])}", flush=True)


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    words = sys.argv[4] if len(sys.argv) > 4 else ""
    print(f"== LAPSCOPE_INJECT=auto against fixed settings, {turns} turns; {load()}")
    for program in PROGRAMS:
        if words in program.words():
            measure(bench, program, turns)


if __name__ == "__main__":
    main()
