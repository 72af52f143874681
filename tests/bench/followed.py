#!/usr/bin/env python3
"""Advice followed to its end: `tests/bench/run.sh followed`, a part of `make bench`.

    tests/bench/followed.py DIRECTORY LAPSCOPE [TURNS] [halo] [amg] [python]

Each program runs over a slow link, recorded with samples. `lapscope report` names the line in which a test belongs, the
program is edited there as `report --how` says it, and both run in turn. Printed are the line, what the report promises and what
was measured: medians over turns, in brackets the first and third quartile. Each turn begins with the other program.

    halo     examples/halo, in C
    amg      BoomerAMG of hypre (amg.c), of which Debian's source is built: apt-get gets it, or HYPRE_SOURCE says where it lies
    python   a stencil in Python, by mpi4py and numpy of the environments of `make check`

DIRECTORY is for what is built and recorded.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from inject import OVER_TCP, ROOT, SLOW_LINK
from sampled import TIMEOUT_S, run, spread

LAUNCH = ["mpirun.openmpi", "-n", "2"]
COMPILER = ["mpicc.openmpi", "-std=gnu11", "-O2", "-g", "-w"]
HYPRE = "2.26.0"


def replaced(text, *pairs):
    for old, new in pairs:
        if old not in text:
            sys.exit(f"the program is not what it was: no\n{old}")
        text = text.replace(old, new)
    return text


class Halo:
    """The loop over rows is in another function than the requests, which have to be known there."""

    name, function, file = "examples/halo", "update_row", "halo.c"

    def __init__(self, directory):
        self.directory, self.more = directory, []

    def build(self, interval=None):
        source = (ROOT / "examples/halo/halo.c").read_text()
        name = "halo" if interval is None else "halo_tested"
        if interval is not None:
            source = self.edited(source, interval)
        (self.directory / f"{name}.c").write_text(source)
        run([*COMPILER, "-o", self.directory / name, self.directory / f"{name}.c", "-lm"])
        return [self.directory / name, *self.more]

    def edited(self, source, interval):
        loop = "    for (int y = 2; y < b->ny; y++)\n        update_row(b, y, steps);\n"
        tested = f"""    double last = MPI_Wtime();
    for (int y = 2; y < b->ny; y++) {{
        update_row(b, y, steps);
        if (MPI_Wtime() - last > {interval}) {{
            int done;
            MPI_Testall(4, tested, &done, MPI_STATUSES_IGNORE);
            last = MPI_Wtime();
        }}
    }}
"""
        head = "static void compute_interior(struct block *b, int steps)\n"
        known = "static MPI_Request *tested, none[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};\n"
        posted = "    post_exchange(b, requests);\n    double posted = MPI_Wtime();\n"
        begin = "    MPI_Init(&argc, &argv);\n"
        return replaced(source, (loop, tested), (head, known + head), (posted, posted + "    tested = requests;\n"),
                        (begin, begin + "    tested = none;\n"))

    def settle(self, printed):
        """Both compute as much."""
        self.more = ["-s", re.search(r"([0-9]+) steps a cell", printed).group(1)]

    def milliseconds(self, printed):
        return float(re.search(r"an iteration: ([0-9.]+) ms", printed).group(1))


class Amg:
    """The loop is in hypre's product of a matrix with a vector, the requests in its caller."""

    name, function, file = f"BoomerAMG of hypre {HYPRE}", "hypre_CSRMatrixMatvecOutOfPlaceHost", "csr_matvec.c"
    size = ["256", "6", "100"]

    def __init__(self, directory):
        self.directory = directory
        given = os.environ.get("HYPRE_SOURCE")
        self.source = Path(given) if given else self.fetch()
        self.library = self.source / "lib/libHYPRE.a"
        if not self.library.exists():
            options = [f"CC={COMPILER[0]}", "CXX=mpicxx.openmpi", "CFLAGS=-O2 -g", "--disable-fortran", f"--prefix={self.source}"]
            run(["./configure", *options], cwd=self.source)
            run(["make", "-j2", "install"], cwd=self.source)

    def fetch(self):
        place = self.directory / "hypre"
        (place / "lists/partial").mkdir(parents=True)
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        sources = place / "debian.sources"
        sources.write_text(f"Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\nSigned-By: {key}\n")
        apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::State::lists={place}/lists"]
        run([*apt, "update"])
        run([*apt, "source", "--download-only", "hypre"], cwd=place)
        run(["tar", "xf", f"hypre_{HYPRE}.orig.tar.gz"], cwd=place)
        return place / f"hypre-{HYPRE}/src"

    def build(self, interval=None):
        binary = self.directory / ("amg" if interval is None else "amg_tested")
        files = [] if interval is None else self.edited(interval)
        rooms = [f"-I{self.source / room}" for room in (".", "utilities", "seq_mv", "parcsr_mv", "blas", "lapack")]
        run([*COMPILER, "-DHAVE_CONFIG_H", *rooms, f"-I{self.source}/include", "-o", binary, ROOT / "tests/bench/amg.c", *files,
             self.library, "-lm"])
        return [binary, *self.size]

    def edited(self, interval):
        """Objects in front of the library take the place of its own. A row is short: the clock is read for each 256th."""
        test = f"""
#include "_hypre_utilities.h"
extern MPI_Request *tested; extern int tested_count;
static inline void test_now_and_then(HYPRE_Int row)
{{
   static double last;
   if (tested_count > 0 && row % 256 == 0 && MPI_Wtime() - last > {interval})
   {{
      int done;
      MPI_Testall(tested_count, tested, &done, MPI_STATUSES_IGNORE);
      last = MPI_Wtime();
   }}
}}
"""
        row = "               for (i = iBegin; i < iEnd; i++)\n               {\n"
        loops = (self.source / "seq_mv/csr_matvec.c").read_text()
        call = "   hypre_CSRMatrixMatvecOutOfPlace(alpha, diag, x_local, beta, b_local, y_local, 0);\n"
        caller = (self.source / "parcsr_mv/par_csr_matvec.c").read_text()
        known = ("   tested = hypre_ParCSRCommHandleRequests(comm_handle);\n"
                 "   tested_count = hypre_ParCSRCommHandleNumRequests(comm_handle);\n")
        files = [self.directory / "csr_matvec_tested.c", self.directory / "par_csr_matvec_tested.c"]
        files[0].write_text(test + replaced(loops, (row, row + "                  test_now_and_then(i);\n")))
        files[1].write_text("#include <mpi.h>\nMPI_Request *tested; int tested_count;\n"
                            + replaced(caller, (call, known + call + "   tested_count = 0;\n")))
        return files

    def settle(self, _):
        pass

    def milliseconds(self, printed):
        return float(re.search(r"cycle ([0-9]+)", printed).group(1)) / 1e3


class Python:
    """What computes is numpy; the loop around it is in Python, beside the requests."""

    name, function, file = "a stencil in Python, mpi4py and numpy", None, None
    SOURCE = """\
import sys
import numpy
from mpi4py import MPI

comm, peer = MPI.COMM_WORLD, 1 - MPI.COMM_WORLD.rank
edge, halo = numpy.ones(1 << 20), numpy.zeros(1 << 20)
inside = numpy.linspace(0, 1, 1 << 15)
BLOCKS, ITERATIONS = 40, 30


def smooth(rounds):
    for _ in range(rounds):
        inside[1:-1] = 0.25 * inside[:-2] + 0.5 * inside[1:-1] + 0.25 * inside[2:]


def iterate(rounds):
    requests = [comm.Irecv(halo, peer, 7), comm.Isend(edge, peer, 7)]
    for block in range(BLOCKS):
        smooth(rounds)
    MPI.Request.Waitall(requests)
    edge[0] = halo[0] + inside[1]


begin = MPI.Wtime()
smooth(100)
rounds = comm.bcast(int(100 * 0.0025 / (MPI.Wtime() - begin)) + 1)
if len(sys.argv) > 1:
    rounds = int(sys.argv[1])
comm.Barrier()
begin = MPI.Wtime()
for _ in range(ITERATIONS):
    iterate(rounds)
comm.Barrier()
if comm.rank == 0:
    print(rounds, "rounds, an iteration:", (MPI.Wtime() - begin) / ITERATIONS * 1e3, "ms, result", inside[100], edge[0])
"""

    def __init__(self, directory):
        self.directory, self.more = directory, []
        self.python = ROOT / "build/mpi/openmpi/bin/python"
        os.environ["PYTHONPATH"] = str(next(ROOT.glob("build/python/lib/python3*/site-packages"), ""))

    def build(self, interval=None):
        file = self.directory / ("heat.py" if interval is None else "heat_tested.py")
        file.write_text(self.SOURCE if interval is None else self.edited(interval))
        return [self.python, file, *self.more]

    def edited(self, interval):
        loop = "    for block in range(BLOCKS):\n        smooth(rounds)\n"
        test = (f"        if MPI.Wtime() - last > {interval}:\n            MPI.Request.Testall(requests)\n"
                "            last = MPI.Wtime()\n")
        return replaced(self.SOURCE, (loop, "    last = MPI.Wtime()\n" + loop + test))

    def settle(self, printed):
        self.more = [printed.split()[0]]

    def milliseconds(self, printed):
        return float(re.search(r"an iteration: ([0-9.]+) ms", printed).group(1))


def over_slow_link(line, more=None, limit=TIMEOUT_S):
    inside = ["unshare", "-n", "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh"]
    return run([*inside, *map(str, line)], {**OVER_TCP, **(more or {})}, limit)


def advised(program, line, directory, lapscope):
    """The report, its first advice to test that names lines, and how often to do so."""
    calibrations = {"LAPSCOPE_CALIBRATION_DIR": str(directory / "calibrations")}
    over_slow_link([lapscope, "calibrate", "--", *LAUNCH], calibrations)
    recorded = directory / "run"
    over_slow_link([lapscope, "run", "--quiet", "--sample=1000", "--dir", recorded, "--", *LAUNCH, *line], calibrations)
    report = json.loads(run([lapscope, "report", "--format", "json", recorded], calibrations))
    advice = next((it for it in report["advice"] if it.get("computes") and it["computes"]["lines"]), None)
    if not advice:
        sys.exit(f"{program.name}: no advice to test with lines: {json.dumps(report['advice'], indent=1)}")
    place = advice["computes"]["lines"][0]["place"]
    if program.function and place["function"] != program.function:
        sys.exit(f"{program.name}: another function is named: {advice['computes']['sentence']}")
    how = run([lapscope, "report", "--how", recorded], calibrations)
    interval = re.search(r"Wtime\(\) - last > ([0-9.e-]+)", how).group(1)
    return report, advice, interval


def follow(program, directory, lapscope, turns):
    program.settle(over_slow_link([*LAUNCH, *program.build()]))
    line = program.build()
    report, advice, interval = advised(program, line, directory, lapscope)
    lines = {"as it was": line, "tested": program.build(interval)}
    times = {name: [] for name in lines}
    for turn in range(turns):
        for name in list(lines)[:: 1 if turn % 2 else -1]:
            times[name].append(program.milliseconds(over_slow_link([*LAUNCH, *lines[name]])))
    saved = [(a - b) / a * 100 for a, b in zip(*times.values())]
    bounds = report["bounds"] or {}
    best, first = bounds.get("perfect_progress_ns"), advice["computes"]["lines"][0]
    place = first["place"]
    at = f"{Path(place['file']).name}:{place['line']}" if place["file"] else Path(place["module"]).name
    where = f"{place['function']} {at}"
    print(f"\n{program.name}, over the slow link; load {os.getloadavg()[0]}\n\n| | |\n|---|---|")
    print(f"| line that samples name | `{where}`, {first['share']:.0%} of {advice['computes']['samples']} samples |")
    print(f"| at stake | {advice['share']:.1%} of the run time |")
    print(f"| best progress, by replay | {1 - best / bounds['recorded_ns']:.1%} less |" if best else "| best progress | not known |")
    print(f"| an iteration as it was, ms | {spread(times['as it was'])} |")
    print(f"| with the test, each {interval} s | {spread(times['tested'])} |")
    print(f"| saved, percent | {spread(saved)} |", flush=True)


def main():
    directory, lapscope, *rest = sys.argv[1:]
    turns = int(rest.pop(0)) if rest and rest[0].isdigit() else 9
    if subprocess.run(["unshare", "-n", "sh", "-c", SLOW_LINK], capture_output=True, check=False).returncode != 0:
        print("== a slow link of its own is not permitted here")
        return
    programs = {"halo": Halo, "amg": Amg, "python": Python}
    for name in rest or programs:
        own = Path(directory) / name
        own.mkdir(parents=True)
        follow(programs[name](own), own, Path(lapscope).resolve(), turns)


if __name__ == "__main__":
    main()
