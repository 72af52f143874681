#!/usr/bin/env python3
"""Replays against measurements: `make whatif-bench`. Prints the tables of docs/experiments.md, as Markdown.

    tests/bench/whatif.py [identity] [bandwidth] [eager] [progress] [ghost] [kernels]      default: all

`identity` records programs under every MPI that is there, and replays each run as it was. The others predict what a change does to
a run, and make runs with that change to compare with: all ways in turn, again and again, as processors are shared and their
speed drifts. A prediction comes from a run of the same turn. Printed are medians over turns, in brackets the smallest and the
largest. Runs of more than TIMEOUT_S are ended and named. Ranks have priority over other work where that is permitted.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LAPSCOPE = os.environ.get("LAPSCOPE_BIN", str(ROOT / "target/release/lapscope"))
TURNS = int(os.environ.get("LAPSCOPE_BENCH_TURNS", "3"))
TIMEOUT_S = 120
RATES = [800, 1600, 3200, 6400]
EXAMPLES = ["halo/halo", "ghost_cells/ghost_cells", "wavefront/wavefront", "overlap/overlap", "reach/stencil"]
MPI = ROOT / "build/mpi"

OPENMPI_ENV = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_osc": "^ucx",  # complains on machines without its network
}
TCP = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
# What makes an MPI send through the network between ranks of one machine: tests/src/bed.rs.
OVER_LINK = {
    "openmpi": TCP, "openmpi5": TCP,
    "intel": {"I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"},
}
# The kernel shares processors among sessions first, and launchers make sessions of their own.
PRIORITY = 'echo -15 2>/dev/null >/proc/self/autogroup; exec "$0" "$@"'


@dataclass(frozen=True)
class Library:
    """An MPI, as tests/src/mpi.rs has it."""

    compiler: str
    launcher: str
    environment: dict = field(default_factory=dict, hash=False)

    def is_there(self):
        return all(shutil.which(program) for program in (self.compiler, self.launcher))


MPIS = {
    "openmpi": Library("mpicc.openmpi", "mpirun.openmpi", OPENMPI_ENV),
    "mpich": Library("mpicc.mpich", "mpirun.mpich"),
    "openmpi5": Library(str(MPI / "openmpi5/bin/mpicc"), str(MPI / "openmpi5/bin/mpirun"),
                        {**OPENMPI_ENV, "OMPI_MCA_btl": "^ofi"}),
    "mpich5": Library(str(MPI / "mpich5/bin/mpicc"), str(MPI / "mpich5/bin/mpiexec.hydra")),
    "mpiabi": Library(str(MPI / "mpich5/bin/mpicc_abi"), str(MPI / "mpich5/bin/mpiexec.hydra")),
    "intel": Library(str(MPI / "intel/bin/mpigcc"), str(MPI / "intel/bin/mpiexec.hydra"),
                     {"I_MPI_ROOT": str(MPI / "intel")}),
}
NAMES = {
    "openmpi": "Open MPI 4.1", "mpich": "MPICH 4.0", "openmpi5": "Open MPI 5", "mpich5": "MPICH 5",
    "mpiabi": "MPICH 5, MPI-5 ABI", "intel": "Intel MPI",
}


class Bed:
    """A directory with programs, and how to run them."""

    def __init__(self, work):
        self.work = Path(work)
        self.runs = 0

    def program(self, source, mpi="openmpi", folder="examples"):
        path = self.work / f"{Path(source).name}.{mpi}"
        if not path.exists():
            line = [MPIS[mpi].compiler, "-std=gnu11", "-O2", "-w", "-o", str(path),
                    str(ROOT / folder / f"{source}.c"), "-lm"]
            subprocess.run(line, check=True)
        return str(path)

    def run(self, command, mpi="openmpi", ranks=2, rate=None, environment=None, cwd=None):
        """Records a run; its directory, or None after it failed or took too long. `rate`: of a slow link, Mbit/s."""
        self.runs += 1
        recorded = self.work / f"run-{self.runs}"
        line = [LAPSCOPE, "run", "--dir", str(recorded), "--"]
        line += [MPIS[mpi].launcher, "-n", str(ranks), "sh", "-c", PRIORITY, *command]
        return recorded if self.launch(line, mpi, rate, environment, cwd) else None

    def calibrate(self, mpi, rate):
        """A calibration file, or None after it failed."""
        self.runs += 1
        file = self.work / f"calibration-{self.runs}.json"
        line = [LAPSCOPE, "calibrate", "--seconds", "6", "--output", str(file), "--", MPIS[mpi].launcher, "-n", "2"]
        return file if self.launch(line, mpi, rate) else None

    def launch(self, line, mpi, rate=None, environment=None, cwd=None):
        """Whether it succeeded in time."""
        line = ["timeout", str(TIMEOUT_S), *line]
        set_here = {**MPIS[mpi].environment, **(OVER_LINK[mpi] if rate else {}), **(environment or {})}
        if rate:
            link = ("PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && "
                    f"tc qdisc add dev lo root tbf rate {rate}mbit burst 256kb latency 20ms && exec \"$@\"")
            line = ["unshare", "-n", "sh", "-c", link, "sh"] + line
        done = subprocess.run(line, env={**os.environ, **set_here}, cwd=cwd, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"failed ({done.returncode}): {' '.join(line)}: {done.stderr[-500:]}", file=sys.stderr)
        return done.returncode == 0

    def what_if(self, recorded, *knobs):
        done = subprocess.run([LAPSCOPE, "whatif", "--format", "json", "--top", "0", *knobs, str(recorded)],
                              capture_output=True, text=True)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"lapscope whatif {recorded} {knobs}: {done.stderr}")
        return json.loads(done.stdout)


def ms(ns):
    return f"{ns / 1e6:.4g}"


def percent(share):
    return f"{100 * share:+.1f} %"


def spread(values, form):
    return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"


def load():
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


# --- identity

def cases(bed):
    """Name, MPI, command, keywords of Bed.run."""
    for mpi in filter(lambda name: MPIS[name].is_there(), MPIS):
        for source in EXAMPLES:
            options = {"halo": ["-i", "10", "-t", "50"], "ghost_cells": ["-f", "all", "-i", "40"],
                       "wavefront": ["-f", "all", "-r", "10"], "stencil": ["-f", "all"]}
            name = Path(source).name
            yield name, mpi, [bed.program(source, mpi), *options.get(name, [])], {}
    for source, rate in (("halo/halo", 1600), ("ghost_cells/ghost_cells", 1600), ("wavefront/wavefront", 1600)):
        name = Path(source).name
        yield f"{name}, slow link", "openmpi", [bed.program(source), *(["-i", "20"] if name == "halo" else ["-f", "all"])], {"rate": rate}
    apps = ROOT / "tests/apps"
    if lmp := shutil.which("lmp"):
        for ranks in (2, 4):
            oversubscribe = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
            yield f"LAMMPS, {ranks} ranks", "openmpi", [lmp, "-in", str(apps / "melt.in"), "-log", "none"], {
                "ranks": ranks, "environment": oversubscribe if ranks > 2 else {}}
    if hpcc := shutil.which("hpcc"):
        shutil.copy(apps / "hpccinf.txt", bed.work)
        yield "HPCC", "openmpi", [hpcc], {"cwd": bed.work}
    if (pw := shutil.which("pw.x")) and (atom := shutil.which("ld1.x")):
        with open(apps / "hydrogen.ld1") as made:
            subprocess.run([atom], stdin=made, cwd=bed.work, capture_output=True, env={**os.environ, **OPENMPI_ENV})
        yield "Quantum ESPRESSO", "openmpi", [pw, "-in", str(apps / "hydrogen.pw")], {"cwd": bed.work}


def identity(bed):
    print(f"\nIdentity: recorded against replayed; load average {load()}\n")
    print("| program | MPI | run time, ms | replayed | exposed, of all ranks' time | replayed | had a processor |")
    print("|---|---|---:|---:|---:|---:|---:|")
    errors = []
    for name, mpi, command, keywords in cases(bed):
        recorded = bed.run(command, mpi, **keywords)
        if recorded is None:
            continue
        said = bed.what_if(recorded)
        run, answer = said["recorded"], said["identity"]
        all_ns = sum(rank["run_ns"] for rank in answer["ranks"])
        off, exposed_off = answer["identity_error"], answer["identity_exposed_error"]
        starved = [problem for problem in said["problems"] if problem["kind"] == "starved"]
        processor = starved[0]["message"].split("only ")[1].split(" %")[0] + " %" if starved else "90 % or more"
        print(f"| {name} | {NAMES[mpi]} | {ms(run['run_ns'])} | {percent(off)} | {100 * run['exposed_ns'] / all_ns:.1f} % | "
              f"{percent(exposed_off)} | {processor} |", flush=True)
        errors.append((abs(off), abs(exposed_off), f"{name}, {NAMES[mpi]}"))
    for place, what in ((0, "run time"), (1, "exposed time")):
        worst = max(errors, key=lambda error: error[place])
        median = statistics.median(error[place] for error in errors)
        within = sum(error[place] <= 0.02 for error in errors)
        print(f"\n{what}: median {100 * median:.2f} %, worst {100 * worst[place]:.1f} % ({worst[2]}), "
              f"{within} of {len(errors)} within 2 %")


# --- predictions

@dataclass
class Way:
    """How a program is run, and how a run of another way is told to be this one."""

    name: str
    knobs: list
    command: list
    keywords: dict = field(default_factory=dict)


def predict(bed, title, ways, bases, knobs=()):
    """Runs all ways in turn, and predicts each from the bases of the same turn, with more knobs for all of them. An error is the
    median of those within turns; all of these with their names."""
    turns, errors = [], []
    for turn in range(TURNS):
        at = turn % len(ways)
        runs = {way.name: bed.run(way.command, **way.keywords) for way in ways[at:] + ways[:at]}
        if all(runs.values()):
            turns.append(runs)
    identity = {way.name: [bed.what_if(runs[way.name], *knobs) for runs in turns] for way in ways}
    for base in bases if turns else []:
        off = statistics.median(said["identity"]["identity_error"] for said in identity[base])
        print(f"| {title} | {base} | as it is (replayed {percent(off)}) | | "
              f"{spread([said['recorded']['run_ns'] for said in identity[base]], ms)} | |", flush=True)
        for way in ways:
            if way.name == base:
                continue
            if not way.knobs:
                measured = [said["recorded"]["run_ns"] for said in identity[way.name]]
                print(f"| {title} | {base} | {way.name} | no knob | {spread(measured, ms)} | |", flush=True)
                continue
            predicted = [bed.what_if(runs[base], *knobs, *way.knobs)["scenarios"][0]["run_ns"] or float("inf") for runs in turns]
            measured = [said["recorded"]["run_ns"] for said in identity[way.name]]
            error = statistics.median(a / b - 1 for a, b in zip(predicted, measured))
            errors.append((abs(error), f"{title}, {way.name}"))
            print(f"| {title} | {base} | {way.name} | {spread(predicted, ms)} | {spread(measured, ms)} | {percent(error)} |",
                  flush=True)
    return errors


def head(what):
    print(f"\n{what}; run times in ms, medians of {TURNS} turns; load average {load()}\n")
    print("| program | from | to | predicted | measured | error |")
    print("|---|---|---|---:|---:|---:|")


HALO = ["-i", "10", "-s", "10"]


def bandwidth(bed):
    head("Slow link at other rates, over TCP of Open MPI 4.1")
    halo = [bed.program("halo/halo"), *HALO]
    ways = [Way(f"{rate} Mbit/s", ["--bandwidth", f"{rate}Mbit/s"], halo, {"rate": rate}) for rate in RATES]
    predict(bed, "halo", ways, [way.name for way in ways])


def eager(bed):
    head("Eager limit (btl_tcp_eager_limit), slow link of 1600 Mbit/s")
    programs = [
        ("halo, 64 KB", [bed.program("halo/halo"), "-x", "8000", "-y", "64", "-i", "60", "-s", "40"]),
        ("wavefront, 32 KB", [bed.program("wavefront/wavefront"), "-b", "32K", "-r", "10"]),
        ("ghost_cells, 100 KB", [bed.program("ghost_cells/ghost_cells"), "-b", "100K", "-i", "100"]),
    ]
    for name, command in programs:
        def way(limit):
            # what the library holds below its limit are the data: its header is not of the message
            environment = {"OMPI_MCA_btl_tcp_eager_limit": str(limit << 10), "OMPI_MCA_btl_tcp_rndv_eager_limit": str(limit << 10),
                           "OMPI_MCA_btl_tcp_max_send_size": str(max(128, limit) << 10)}
            return Way(f"{limit} KiB", ["--eager-limit", str((limit << 10) - 64)], command,
                       {"rate": 1600, "environment": environment})
        predict(bed, name, [way(limit) for limit in (4, 64, 256)], ["4 KiB", "256 KiB"])


def progress(bed):
    head("Injected tests (LAPSCOPE_INJECT=timer), slow link of 1600 Mbit/s")
    halo = [bed.program("halo/halo"), "-i", "15", "-s", "10"]
    ways = [Way("plain", [], halo, {"rate": 1600})]
    for interval in (1000, 5000):
        environment = {"LAPSCOPE_INJECT": "timer", "LAPSCOPE_INJECT_INTERVAL_US": str(interval), "LAPSCOPE_INJECT_BUDGET": "20"}
        ways.append(Way(f"every {interval / 1000:g} ms", ["--progress", f"every={interval}us"], halo,
                        {"rate": 1600, "environment": environment}))
    predict(bed, "halo", ways, ["plain"])


def ghost(bed):
    head("ghost_cells by strategy, shared memory of Open MPI 4.1 and MPICH 4.0")
    for mpi in filter(lambda name: MPIS[name].is_there(), ("openmpi", "mpich")):
        program = bed.program("ghost_cells/ghost_cells", mpi)

        def way(name, form, knobs):
            return Way(name, knobs, [program, "-f", form, "-i", "300"], {"mpi": mpi})
        ways = [way("plain", "plain", []), way("1: tests in the computation", "test", ["--progress", "every=500us"]),
                way("2: sends completed in the Waitall", "waitall", [])]
        predict(bed, f"ghost_cells, {NAMES[mpi]}", ways, ["plain"])


# Of messages both ways, with as much computation as they take at that rate.
KERNEL_RATE = 1600
KERNELS = {"64 KiB": (1, 64 << 10, "equal", 1000), "2 MiB": (1, 2 << 20, "equal", 40), "16 MiB": (1, 16 << 20, "equal", 8),
           "five sizes to 2 MiB": (5, 2 << 20, "mixed", 20)}


def kernels(bed):
    head(f"Kernels with what was left out of the model, from {KERNEL_RATE} Mbit/s with its calibration")
    errors = []
    for mpi in filter(lambda name: MPIS[name].is_there(), ("openmpi", "intel")):
        calibration = bed.calibrate(mpi, KERNEL_RATE)
        if calibration is None:
            continue
        reference = ("--reference", str(calibration))
        program = bed.program("truth", mpi, "tests/apps")
        base = f"{KERNEL_RATE} Mbit/s"
        rates = [(base, [], KERNEL_RATE)]
        rates += [(f"{rate} Mbit/s", ["--bandwidth", f"x{rate / KERNEL_RATE:g}"], rate) for rate in (800, 3200)]
        for name, (messages, size, sizes, steps) in KERNELS.items():
            bytes_both_ways = 2 * sum(size >> (i if sizes == "mixed" else 0) for i in range(messages))
            compute_ns = int(bytes_both_ways * 8 / KERNEL_RATE * 1000)

            def kernel(scale, *words):
                return [program, str(messages), str(size), sizes, "both", str(int(scale * compute_ns)), str(steps), *words]
            ways = [Way(rate, knobs, kernel(1), {"mpi": mpi, "rate": mbit}) for rate, knobs, mbit in rates]
            there = {"mpi": mpi, "rate": KERNEL_RATE}
            ways += [Way("tests in the computation", ["--progress", "every=50us"], kernel(1, "tested"), there),
                     Way("twice the computation", ["--cpu", "0.5"], kernel(2), there),
                     Way("half the computation", ["--cpu", "2"], kernel(0.5), there)]
            errors += predict(bed, f"{name}, {NAMES[mpi]}", ways, [base], reference)
        wavefront = [bed.program("wavefront/wavefront", mpi), "-b", "256K", "-r", "10"]
        ways = [Way(rate, knobs, wavefront, {"mpi": mpi, "rate": mbit}) for rate, knobs, mbit in rates]
        errors += predict(bed, f"wavefront, {NAMES[mpi]}", ways, [base], reference)
    worst = max(errors)
    print(f"\nmedian {100 * statistics.median(error for error, _ in errors):.1f} %, worst {100 * worst[0]:.1f} % ({worst[1]}), "
          f"{sum(error <= 0.1 for error, _ in errors)} of {len(errors)} within 10 %")


def main():
    parts = {"identity": identity, "bandwidth": bandwidth, "eager": eager, "progress": progress, "ghost": ghost,
             "kernels": kernels}
    wanted = sys.argv[1:] or list(parts)
    with tempfile.TemporaryDirectory(prefix="lapscope-whatif-") as work:
        bed = Bed(os.environ.get("LAPSCOPE_BENCH_WORK", work))
        for part in wanted:
            parts[part](bed)


if __name__ == "__main__":
    main()
