#!/usr/bin/env python3
"""What `lapscope tune` finds among settings of MPIs, beside the best that is known: `make tune-check`.

    tests/bench/settings.py [--minutes N] [--trials N] [WORD ...]

Two ranks over the slow link of the tests. Of each program and MPI every setting by hand is run in turn with the bare program,
TURNS times; its gain is the median of ratios within a turn. `tune` has N minutes for each (4). It should find a setting whose gain
may be that of the best by hand, by its interval, or that none gains. Last come trials (40) of a variable that nobody reads: `tune` should
find a gain in at most 5 of 100. With WORDs only rows whose name has one of them. Where processors are not free for the ranks,
times tell of the scheduler: the load average is printed. Takes an hour.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from inject import OVER_TCP, ROOT, SLOW_LINK, slow_link_front  # noqa: E402

LAPSCOPE = os.environ.get("LAPSCOPE_BIN", str(ROOT / "target/release/lapscope"))
TURNS = 3
TIMEOUT_S = 300
# a gain that is less by this is no worse
EQUAL = 0.03
MPI = ROOT / "build/mpi"
LIMIT = str(8 << 20)
EAGER = {"OMPI_MCA_btl_tcp_eager_limit": LIMIT, "OMPI_MCA_btl_tcp_rndv_eager_limit": LIMIT}
THREAD = {"OMPI_MCA_btl_tcp_progress_thread": "1"}
MPICH_OFI = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
INTEL_TCP = {
    "I_MPI_ROOT": str(MPI / "intel"), "I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo",
}

# name: compiler, launcher, variables of the slow link, settings that a person would try, the Python of mpi4py
MPIS = {
    "Open MPI": ("mpicc.openmpi", "mpirun.openmpi", OVER_TCP, [THREAD, EAGER, THREAD | EAGER], MPI / "openmpi/bin/python"),
    "MPICH": (
        MPI / "mpich5/bin/mpicc", MPI / "mpich5/bin/mpiexec.hydra", MPICH_OFI,
        [{"MPIR_CVAR_ASYNC_PROGRESS": "1"}, {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": LIMIT}], MPI / "mpich5/bin/python",
    ),
    "Intel MPI": (
        MPI / "intel/bin/mpigcc", MPI / "intel/bin/mpiexec.hydra", INTEL_TCP,
        [{"I_MPI_ASYNC_PROGRESS": "1"}, {"I_MPI_ASYNC_PROGRESS": "1", "I_MPI_ASYNC_PROGRESS_PIN": "0,1"}],
        MPI / "intel/bin/python",
    ),
}

# posts an exchange of 2 MB, computes, waits
PYTHON = """
from mpi4py import MPI
import array
world, peer = MPI.COMM_WORLD, 1 - MPI.COMM_WORLD.rank
out, into = bytearray(2 << 20), bytearray(2 << 20)
field = array.array("d", range(1000))
for step in range(120):
    requests = [world.Irecv([into, MPI.BYTE], peer), world.Isend([out, MPI.BYTE], peer)]
    for _ in range(1000):
        total = sum(field)
    MPI.Request.Waitall(requests)
"""


class Row:
    """A program under an MPI."""

    def __init__(self, place, name, mpi, program):
        self.place, self.name, self.mpi = place, f"{name}, {mpi}", mpi
        _, launcher, self.link, self.by_hand, _ = MPIS[mpi]
        self.line = [str(launcher), "-n", "2", *map(str, program)]

    def ran(self, line, variables, timeout):
        """A finished process, over the slow link."""
        inside = [*slow_link_front(), "sh", "-c", SLOW_LINK + ' && exec "$@"', "sh", *line]
        environment = os.environ | self.link | variables
        return subprocess.run(
            ["timeout", "-k", "10", str(timeout), *inside],
            env=environment, cwd=self.place, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )

    def seconds(self, variables):
        """From launch to end; None: it failed."""
        begin = time.monotonic()
        done = self.ran(self.line, variables, TIMEOUT_S)
        return time.monotonic() - begin if done.returncode == 0 else None

    def best_by_hand(self):
        """The gain and the setting; None: each of them failed."""
        ratios = {place: [] for place in range(len(self.by_hand))}
        for _ in range(TURNS):
            bare = self.seconds({})
            for place, setting in enumerate(self.by_hand):
                took = self.seconds(setting)
                if bare and took:
                    ratios[place].append(1 - took / bare)
        gains = [(statistics.median(found), words(self.by_hand[place])) for place, found in ratios.items() if found]
        return max(gains, default=None)

    def tune(self, minutes, *options):
        """What `lapscope tune` says of settings; None: it failed, which is said."""
        line = [LAPSCOPE, "tune", "--no-injection", "--format", "json", "--budget", str(minutes), *options, "--", *self.line]
        done = self.ran(line, {}, 60 * minutes + TIMEOUT_S)
        for left in self.place.glob("lapscope-tune-*"):
            shutil.rmtree(left)
        if done.returncode == 0:
            return json.loads(done.stdout)["settings"]
        print(f"FAILED ({done.returncode}): {' '.join(line)}\n{done.stderr}", file=sys.stderr)
        return None


def words(setting):
    return " ".join(f"{name}={value}" for name, value in setting.items())


def percent(gain):
    return "" if gain is None else f"{100 * gain:.1f} %"


def answered(found):
    """The most that the gain that is certain may be, 0 without; and the cells that say so."""
    best, proof = found["best"], (found["best"] or {}).get("proof")
    if found["found"] != "gain":
        tried = ", ".join(f"{row['variables'][0]['name']} {percent(row['gain']) or 'failed'}" for row in found["tried"])
        return 0.0, [f"{found['found']} ({tried or 'nothing tried'})", "", ""]
    setting = words({it["name"]: it["value"] for it in best["variables"]})
    gain = proof["gain"]
    interval = f"{percent(gain['estimate'])} ({100 * gain['low']:.1f} to {100 * gain['high']:.1f})"
    return gain["high"], [setting, interval, percent(best["predicted"])]


def compare(rows, minutes):
    print("| program | tune finds | gain | predicted | best by hand | gain | as good |\n|---|---|---|---|---|---|---|")
    for row in rows:
        by_hand, found = row.best_by_hand(), row.tune(minutes)
        hand = max(by_hand[0], 0.0) if by_hand else 0.0
        if found is None:
            print(f"| {row.name} | FAILED |", flush=True)
            continue
        most, cells = answered(found)
        by_hand = [by_hand[1], percent(by_hand[0])] if by_hand else ["all failed", ""]
        verdict = "yes" if most >= hand - EQUAL else "NO"
        print(f"| {' | '.join([row.name, *cells, *by_hand, verdict])} |", flush=True)


def against_itself(row, trials):
    found = 0
    for trial in range(trials):
        answer = row.tune(5, "--setting", f"NOBODY_READS_THIS={trial}")
        found += answer is not None and answer["found"] == "gain"
    print(f"\n{row.name}: a variable that nobody reads gains in {found} of {trials} trials")


def programs(place):
    """Those that can be built and run here."""
    (place / "exchange.py").write_text(PYTHON)
    melt = (ROOT / "tests/apps/melt.in").read_text()
    (place / "melt.in").write_text(melt.replace("0 10 0 10 0 10", "0 20 0 20 0 20").replace("100\n", "300\n"))
    for mpi, (compiler, _, _, _, python) in MPIS.items():
        if shutil.which(str(compiler)) is None:
            print(f"{mpi} is not here", file=sys.stderr)
            continue
        built = {}
        for name in ("halo", "ghost_cells"):
            built[name] = place / f"{name}.{mpi.split()[0]}"
            source = ROOT / "examples" / name / f"{name}.c"
            subprocess.run([str(compiler), "-std=gnu11", "-O2", "-w", "-o", built[name], source, "-lm"], check=True,
                           env=os.environ | {"I_MPI_ROOT": str(MPI / "intel")})
        yield Row(place, "halo", mpi, [built["halo"], "-s", "28", "-i", "20"])
        if python.exists():
            yield Row(place, "mpi4py", mpi, [python, "exchange.py"])
        yield Row(place, "ghost_cells", mpi, [built["ghost_cells"], "-f", "plain", "-b", "512K", "-l", "20000,2000", "-i", "150"])
        if mpi == "Open MPI" and shutil.which("lmp"):
            yield Row(place, "LAMMPS", mpi, ["lmp", "-in", "melt.in", "-log", "none"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=4)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    if not slow_link_front():
        sys.exit("network namespaces or tc are not permitted here")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        rows = [row for row in programs(place) if not asked.words or any(word in row.name for word in asked.words)]
        print(f"load average {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors\n")
        compare(rows, asked.minutes)
        if asked.trials and not asked.words:
            short = place / "halo.Open"
            against_itself(Row(place, "halo", "Open MPI", [short, "-s", "5", "-i", "5"]), asked.trials)
        print(f"load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
