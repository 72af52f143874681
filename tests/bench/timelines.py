#!/usr/bin/env python3
"""How fast `lapscope export` writes timelines, and how large they are: calls a second of the whole command, and without what
reading the run takes, which is that of `lapscope export` of one rank. Medians of runs, with the least and the most.

    tests/bench/timelines.py [--ranks 16] [--rounds 15625] [--repeat 3]

Needs the release build with examples: `cargo build --release -p lapscope --bins --examples`.
"""

import argparse
import os
import re
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
    """Seconds, calls and bytes."""
    with tempfile.TemporaryDirectory(dir=run.parent) as place:
        made = Path(place) / "made"
        line = [RELEASE / "lapscope", "export", what, run, "-o", made, *options]
        begin = time.monotonic()
        said = subprocess.run(line, check=True, capture_output=True, text=True, timeout=900).stderr
        seconds = time.monotonic() - begin
        files = [made] if made.is_file() else [file for file in made.rglob("*") if file.is_file()]
        number, unit = re.search(r": ([\d.]+) ?(M?) calls,", said).groups()
        calls = float(number) * (1e6 if unit else 1)
        return seconds, calls, sum(file.stat().st_size for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=15625, help="of 8 requests and 16 blocking messages a rank")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    if not (RELEASE / "examples/synthetic").exists():
        sys.exit(__doc__.strip().splitlines()[-1])
    place = Path(tempfile.mkdtemp(prefix="timelines-", dir=os.environ.get("TMPDIR")))
    try:
        run = place / "run"
        line = [RELEASE / "examples/synthetic", run, str(arguments.ranks), str(arguments.rounds), "--stencil", "2"]
        subprocess.run(line, check=True, capture_output=True, timeout=900)
        print("| format | calls | seconds | calls/s | without reading | bytes a call |\n|---|---|---|---|---|---|")
        for what in ["perfetto", "chrome", "otf2"]:
            rows = [(export(what, run), export("perfetto", run, "--ranks", "0")) for _ in range(arguments.repeat)]
            seconds = [all[0] for all, _ in rows]
            (_, calls, size), (_, of_one, _) = rows[0]
            rates = sorted(calls / second for second in seconds)
            own = sorted((calls - of_one) / (all[0] - one[0]) for all, one in rows)
            middle = statistics.median
            print(
                f"| {what} | {calls / 1e6:.2f} M | {middle(seconds):.2f} | {middle(rates) / 1e6:.2f} M"
                f" ({rates[0] / 1e6:.2f} to {rates[-1] / 1e6:.2f}) | {middle(own) / 1e6:.2f} M"
                f" ({own[0] / 1e6:.2f} to {own[-1] / 1e6:.2f}) | {size / calls:.0f} |"
            )
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
