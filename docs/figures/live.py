#!/usr/bin/env python3
"""Makes docs/figures/live.png: `lapscope live` on examples/halo, as tmux has it, painted by chromium.

    docs/figures/live.py [PNG]

LAPSCOPE_BIN names the command (target/release/lapscope). Needs tmux, chromium and Debian's Open MPI.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, LINES, RANKS, SECONDS = 80, 24, 4, 14
COLORS = {1: "#c0392b", 2: "#2e8b57", 3: "#b8860b", 4: "#1f5fa8"}
PAGE = """<!doctype html><meta charset="utf-8"><style>
body{{margin:0;background:#fcfcfa;color:#1c1c1c}}
pre{{margin:8px 10px;font:14px/17px "DejaVu Sans Mono",monospace}}
</style><pre>{}</pre>"""


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


def painted(screen):
    """A screen with colours (SGR of ECMA-48) as HTML."""
    parts, style = [], {}
    for piece in re.split(r"(\x1b\[[0-9;]*m)", screen):
        sgr = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not sgr:
            css = ";".join(f"{key}:{value}" for key, value in style.items())
            parts.append(f'<span style="{css}">{html.escape(piece)}</span>' if piece else "")
            continue
        codes = [int(code or 0) for code in sgr[1].split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["color"] = "#777"
            elif 30 <= code <= 37:
                style["color"] = COLORS.get(code - 30, "inherit")
            elif code == 38 and codes[:1] == [5]:
                style["color"] = COLORS.get(codes[1], "inherit")
                codes = codes[2:]
            elif code == 39:
                style.pop("color", None)
    return PAGE.format("".join(parts))


def capture(place, command):
    """The screen of `lapscope live` after some seconds of a job."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "LANG": "C.UTF-8"}
    environment["OMPI_MCA_mpi_yield_when_idle"] = "1"
    halo = place / "halo"
    run("mpicc.openmpi", "-O2", "-g", ROOT / "examples/halo/halo.c", "-o", halo, "-lm")
    line = [command, "run", "-q", "--dir", "run", "--", "mpirun.openmpi", "--oversubscribe", "-n", str(RANKS), "./halo", "-x", "65536", "-i", "100000", "-t", "20"]
    job = subprocess.Popen(line, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tmux = ["tmux", "-S", str(place / "tmux")]
    try:
        view = f"LANG=C.UTF-8 {command} live run"
        run(*tmux, "-u", "new-session", "-d", "-x", COLUMNS, "-y", LINES, "-c", place, view, env=environment)
        time.sleep(SECONDS)
        return run(*tmux, "capture-pane", "-e", "-p", capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"])
        job.terminate()
        job.wait()


def main():
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/figures/live.png").resolve()
    command = Path(os.environ.get("LAPSCOPE_BIN", ROOT / "target/release/lapscope")).resolve()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        page = place / "screen.html"
        page.write_text(painted(capture(place, command).rstrip("\n")))
        size = f"--window-size={COLUMNS * 8 + 60},{LINES * 17 + 16}"
        run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size, f"--screenshot={target}", page.as_uri(), stderr=subprocess.DEVNULL)
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
