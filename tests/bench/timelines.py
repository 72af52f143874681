#!/usr/bin/env python3
"""How fast `lapscope export` writes timelines, and how large they are: calls by second of processor time of the whole command, and
without what reading the run takes, which is that of an export of one rank. Medians of runs, with the least and the most: of
processor time, as other programs may be running.

    tests/bench/timelines.py [--ranks 16] [--requests 60000] [--repeat 3]

Needs the release build with examples: `cargo build --release -p lapscope --bins --examples`.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "target/release"


def export(what, run, *options):
    """Seconds, processor seconds, calls and bytes."""
    with tempfile.TemporaryDirectory(dir=run.parent) as place:
        made = Path(place) / "made"
        line = [RELEASE / "lapscope", "export", what, run, "-o", made, *options]
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        said = subprocess.run(line, check=True, capture_output=True, text=True, timeout=900).stderr
        seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        files = [made] if made.is_file() else [file for file in made.rglob("*") if file.is_file()]
        number, unit = re.search(r": ([\d.]+) ?(M?) calls,", said).groups()
        calls = float(number) * (1e6 if unit else 1)
        return seconds, processor, calls, sum(file.stat().st_size for file in files)


def spread(rates):
    return f"{statistics.median(rates) / 1e6:.2f} M ({rates[0] / 1e6:.2f} to {rates[-1] / 1e6:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--requests", type=int, default=60_000, help="of each rank, besides twice as many blocking messages")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    if not (RELEASE / "examples/synthetic").exists():
        sys.exit(__doc__.strip().splitlines()[-1])
    place = Path(tempfile.mkdtemp(prefix="timelines-", dir=os.environ.get("TMPDIR")))
    try:
        run = place / "run"
        line = [RELEASE / "examples/synthetic", run, str(arguments.ranks), str(arguments.requests), "--stencil", "2"]
        subprocess.run(line, check=True, capture_output=True, timeout=900)
        print("| format | calls | seconds | of processors | calls/s | without reading | bytes a call |\n|" + "---|" * 7)
        middle = statistics.median
        for what in ["perfetto", "chrome", "otf2"]:
            rows = [(export(what, run), export("perfetto", run, "--ranks", "0")) for _ in range(arguments.repeat)]
            (_, _, calls, size), (_, _, of_one, _) = rows[0]
            rates = sorted(calls / all[1] for all, _ in rows)
            own = sorted((calls - of_one) / (all[1] - one[1]) for all, one in rows)
            print(
                f"| {what} | {calls / 1e6:.2f} M | {middle(all[0] for all, _ in rows):.2f}"
                f" | {middle(all[1] for all, _ in rows):.2f} | {spread(rates)} | {spread(own)} | {size / calls:.0f} |"
            )
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
