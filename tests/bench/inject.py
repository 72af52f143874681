#!/usr/bin/env python3
"""What injected progress brings and costs: `tests/bench/run.sh inject`, a part of `make bench`.

    tests/bench/inject.py DIRECTORY PRELOAD [slow] [late] [nothing]

DIRECTORY holds progress.c compiled as progress.NAME for each MPI; runs are recorded there, too. PRELOAD is liblapscope.so.

Of each program all ways (bare, recorded, injected) are run in turn, again and again, and numbers are compared within a turn
only: processors are shared, and their speed drifts. Each turn starts with another way. Printed are medians over turns, in
brackets the first and third quartile. Where processors are not free for the ranks, times tell of the scheduler more than of MPI:
so the load average is printed too.
"""

import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TURNS = 7
TIMEOUT_S = 120
KB, MB = 1 << 10, 1 << 20

# as in tests/src/bed.rs
SLOW_LINK = (
    "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && "
    "tc qdisc add dev lo root tbf rate 1600mbit burst 256kb latency 20ms"
)
OVER_TCP = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    # root in a namespace is root to Open MPI
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}

# a rank a core; of two ranks Open MPI sees to that itself
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi"],
    "mpich": ["mpirun.mpich", "-bind-to", "core"],
    "mpich5": [str(ROOT / "build/mpi/mpich5/bin/mpiexec.hydra"), "-bind-to", "core"],
}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "mpich5": "MPICH of PyPI"}


@dataclass(frozen=True, eq=False)
class Way:
    """How a program is run."""

    name: str
    preload: bool = False
    environment: dict = field(default_factory=dict)
    by_hand: bool = False
    level: str = "single"


BARE = Way("bare")
RECORDED = Way("recorded only", True)
TIMER = Way("timer", True, {"LAPSCOPE_INJECT": "timer"})
THREAD = Way("thread", True, {"LAPSCOPE_INJECT": "thread"})
BY_HAND = Way("tests by hand", by_hand=True)
MPICHS_OWN = Way("MPICH's own", environment={"MPIR_CVAR_ASYNC_PROGRESS": "1"}, level="multiple")


@dataclass(frozen=True, eq=False)
class Program:
    """A run of progress.c: its work in milliseconds, and under what."""

    mpi: str
    kernel: str
    size: int
    work_ms: float
    iterations: int
    slow: bool = False
    environment: dict = field(default_factory=dict)


class Bench:
    def __init__(self, directory, preload):
        self.directory = Path(directory)
        self.preload = preload
        self.unshare = slow_link_front()
        self.rounds = {}

    def mpis(self):
        return [mpi for mpi in LAUNCHERS if (self.directory / f"progress.{mpi}").exists()]

    def execute(self, program, arguments, environment, before=()):
        """Standard output of two ranks of progress; None, said on standard error, when that fails."""
        line = [*LAUNCHERS[program.mpi], "-n", "2", *before, str(self.directory / f"progress.{program.mpi}"), *arguments]
        if program.slow:
            line = [*self.unshare, "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh", *line]
            environment = OVER_TCP | environment
        done = subprocess.run(
            ["timeout", "-k", "10", str(TIMEOUT_S), *line],
            env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        if done.returncode == 0:
            return done.stdout
        print(f"FAILED ({done.returncode}): {' '.join(line)}\n{done.stdout}{done.stderr}", file=sys.stderr)
        return None

    def rounds_of(self, program):
        """The loop rounds that its work is, found once for each MPI."""
        if program.mpi not in self.rounds:
            found = [self.execute(program, ["calibrate", "100"], {}) for _ in range(3)]
            if None in found:
                sys.exit(1)
            self.rounds[program.mpi] = max(map(int, found)) / 100
        return int(self.rounds[program.mpi] * program.work_ms)

    def run(self, program, way):
        """What progress printed, as a dictionary, and what lapscope recorded of its injection."""
        tests = int(program.work_ms) if way.by_hand else 0
        arguments = [program.kernel, program.size, self.rounds_of(program), program.iterations, tests, way.level]
        records = self.directory / "run"
        environment = program.environment | way.environment | {"LAPSCOPE_DIR": str(records), "LAPSCOPE_QUIET": "on"}
        before = ["env", f"LD_PRELOAD={self.preload}"] if way.preload else []
        out = self.execute(program, list(map(str, arguments)), environment, before)
        result = None
        if out:
            words = out.split()
            result = dict(zip(words[::2], map(int, words[1::2])))
            result |= injected(records) if way.preload else {}
        shutil.rmtree(records, ignore_errors=True)
        return result

    def turns(self, program, ways):
        """Way -> its results, None where one failed; the k-th of each are of one turn."""
        results = {way: [] for way in ways}
        for turn in range(TURNS):
            first = turn % len(ways)
            for way in ways[first:] + ways[:first]:
                results[way].append(self.run(program, way))
        return results


def slow_link_front():
    """How to get a network of one's own; empty where that is not permitted."""
    for front in (["unshare", "-n"], ["unshare", "-rn"]):
        if subprocess.run([*front, "sh", "-c", SLOW_LINK], capture_output=True).returncode == 0:
            return front
    return []


def injected(records):
    """Sums over the ranks of a run: what was injected, what it cost, how long they ran; problems said on standard error."""
    sums = {"tests": 0, "found": 0, "interrupts": 0, "deferred": 0, "spent": 0, "ran": 0}
    for file in sorted(records.glob("rank-*.db")):
        with sqlite3.connect(file) as db:
            row = db.execute("SELECT sum(tests), sum(found), sum(interrupts), sum(deferred) FROM injection").fetchone()
            spent, problem = db.execute("SELECT sum(spent_ns), max(problem) FROM injector").fetchone()
            (ran,) = db.execute("SELECT sum(end_ns - init_end_ns) FROM rank").fetchone()
        db.close()
        if problem:
            print(f"  {file.name}: {problem}", file=sys.stderr)
        for key, value in zip(sums, (*row, spent, ran)):
            sums[key] += value or 0
    return sums


def spread(values, form="{:.3f}"):
    """Median and quartiles in words."""
    values = [value for value in values if value is not None]
    if len(values) < 2:
        return "-"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{form.format(middle)} ({form.format(low)} .. {form.format(high)})"


def pairs(results, way, what, base=BARE):
    """what(base, this) of each turn in which both ran."""
    return [what(other, this) for other, this in zip(results[base], results[way]) if other and this]


def hidden_percent(bare, this):
    """Overlap as overlap/request.rs has it, of what was possible; no computation hides what the program itself does to post."""
    possible = min(bare["alone"] - bare["post"], this["compute"])
    hidden = bare["alone"] - this["post"] - this["wait"]
    return 100 * min(max(hidden, 0), possible) / possible


def time_ratio(base, this):
    return this["total"] / base["total"]


def wait_ratio(base, this):
    return this["wait"] / base["wait"]


def middle(results, key):
    values = [result[key] for result in results if result]
    return statistics.median(values) if values else float("nan")


def time(ns):
    return f"{ns / 1e6:.2f} ms" if ns >= 1e5 else f"{ns / 1e3:.1f} µs"


def size_name(size):
    return f"{size // MB} MB" if size >= MB else f"{size // KB} KB" if size >= KB else f"{size} B"


def cost(results):
    """What an injected run tested and spent; empty for others."""
    if not any(result and result.get("tests", 0) + result.get("interrupts", 0) for result in results):
        return ""
    spent = [100 * result["spent"] / result["ran"] for result in results if result]
    return (
        f"{middle(results, 'tests'):6.0f} {middle(results, 'found'):6.0f} {middle(results, 'interrupts'):6.0f} "
        f"{middle(results, 'deferred'):6.0f}   {spread(spent, '{:.2f}')}"
    )


def load():
    return "load average " + Path("/proc/loadavg").read_text().rsplit(" ", 2)[0]


HEAD = f"  {'size':7} {'alone':>9}  {'way':14} {'post':>9} {'wait':>10}   "
COST_HEAD = f"{'tests':>6} {'found':>6} {'interr':>6} {'defer':>6}   spent, % of run time"


def print_table(results, program, third):
    """A block of rows for one size; `third` makes the column that only this part has, of a way."""
    alone = time(middle(results[BARE], "alone"))
    for way, runs in results.items():
        front = (size_name(program.size), alone) if way is BARE else ("", "")
        ratio = "" if way is BARE else spread(pairs(results, way, time_ratio))
        print(
            f"  {front[0]:7} {front[1]:>9}  {way.name:14} {time(middle(runs, 'post')):>9} {time(middle(runs, 'wait')):>10}   "
            f"{third(results, way):25} {ratio:25} {cost(runs)}".rstrip(),
            flush=True,
        )


def slow(bench):
    """Large messages both ways over a slow link, with work that could hide them all."""
    print(f"== injection over a slow link (1600 Mbit/s, both directions share it): Open MPI over TCP, 200 ms of work; {load()}")
    if not bench.unshare or "openmpi" not in bench.mpis():
        print("  not measured: no Open MPI, or network namespaces and tc are not permitted here")
        return
    print("  alone: time inside MPI without work; hidden: (alone - post - wait) / min(alone - post of bare, work), held in 0..100 %")
    print(f"{HEAD}{'% hidden of possible':25} {'time of all, to bare':25} {COST_HEAD}")
    for size in (64 * KB, 256 * KB, 1 * MB, 4 * MB, 16 * MB):
        program = Program("openmpi", "exchange", size, 200, 5, slow=True)
        results = bench.turns(program, [BARE, RECORDED, TIMER, THREAD, BY_HAND])
        print_table(results, program, lambda r, way: spread(pairs(r, way, hidden_percent), "{:.1f}"))
    print(f"  {load()}")


def late(bench):
    """A sender whose receiver computes, over shared memory."""
    for mpi in bench.mpis():
        print(f"== injection over shared memory, {NAMES[mpi]}: a sender and a receiver who computes 20 ms; {load()}")
        print("  post and wait are the sender's; when it has waited, it computes as much as the receiver")
        print(f"{HEAD}{'wait, to bare':25} {'time of all, to bare':25} {COST_HEAD}")
        ways = [BARE, RECORDED, TIMER, THREAD, BY_HAND] + ([MPICHS_OWN] if mpi.startswith("mpich") else [])
        for size in (64 * KB, 1 * MB, 16 * MB):
            program = Program(mpi, "late", size, 20, 15)
            print_table(
                bench.turns(program, ways), program,
                lambda r, way: "" if way is BARE else spread(pairs(r, way, wait_ratio)),
            )
    print(f"  {load()}")


def nothing(bench):
    """Small messages beside computation: nothing to gain, so only what it costs is left."""
    print(f"== injection with nothing to gain: messages of 64 bytes over shared memory, LAPSCOPE_INJECT_MIN_BYTES=0; {load()}")
    print(f"  {'MPI':9} {'work':>7}  {'way':14} {'time of all, to recorded only':30} {COST_HEAD} (budget: 3 %)")
    for mpi in bench.mpis():
        for work_ms, iterations in ((0.1, 10000), (5, 200)):
            program = Program(mpi, "exchange", 64, work_ms, iterations, environment={"LAPSCOPE_INJECT_MIN_BYTES": "0"})
            results = bench.turns(program, [RECORDED, TIMER, THREAD])
            for way in (TIMER, THREAD):
                ratio = spread(pairs(results, way, time_ratio, RECORDED))
                print(f"  {mpi:9} {work_ms:4} ms  {way.name:14} {ratio:30} {cost(results[way])}".rstrip(), flush=True)
    print(f"  {load()}")


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    parts = {"slow": slow, "late": late, "nothing": nothing}
    for name in sys.argv[3:] or parts:
        parts[name](bench)


if __name__ == "__main__":
    main()
