#!/usr/bin/env python3
"""Holds the crates against what architecture.md says of them, as far as cargo does not: where SQL of readers stands, what
pure crates are made of, and which file alone knows something.

    tests/house.py                names what is wrong; the exit code tells whether anything is
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A query of a run stands here; a table of experiments is a format of its own, and the command prints examples.
SQL = re.compile(r"\bSELECT\b")
SQL_PLACES = ("crates/data/", "crates/trace/src/query", "crates/experiments/src/database.rs", "cli/src/args", "cli/src/commands/sql.rs")

# What they may be made of: nothing that reads, writes, asks or starts.
PURE = ("measure", "predict")
HARMLESS = {"lapscope-data", "lapscope-measure", "lapscope-trace", "rayon", "rustc-hash", "serde", "toml"}

# The name of a crate, and the only files that may use it.
KNOWN_BY = {
    "lapscope_experiments": ("cli/src/commands/bench.rs",),
    "lapscope_columns": ("cli/src/commands/export/parquet.rs",),
    "ratatui": ("crates/show/src/live",),
}


def sources():
    """Rust files with their text, without tests."""
    for file in sorted([*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("cli/src/**/*.rs")]):
        if file.stem != "tests" and "tests" not in file.parts:
            yield str(file.relative_to(ROOT)), file.read_text("utf-8").split("\n#[cfg(test)]\nmod ", 1)[0]


def misplaced():
    for name, text in sources():
        if SQL.search(text) and not name.startswith(SQL_PLACES):
            yield f"{name}: SQL of readers stands in crates/data and in crates/trace/src/query"
        for crate, files in KNOWN_BY.items():
            if re.search(rf"(?m)^ *(?:pub )?use {crate}::|\b{crate}::\w", text) and not name.startswith(files):
                yield f"{name}: {crate} is known by {', '.join(files)} alone"


def impure():
    rules = set()
    for crate in PURE:
        manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text("utf-8")
        used = re.search(r"(?ms)^\[dependencies\]\n(.*?)(?:^\[|\Z)", manifest)[1]
        for library in sorted(set(re.findall(r"(?m)^([\w-]+)", used)) - HARMLESS):
            yield f"crates/{crate}/Cargo.toml: {library} is not among what a pure crate is made of"
        rules.add((ROOT / "crates" / crate / "clippy.toml").read_text("utf-8").split("\n", 1)[1])
    if len(rules) > 1:
        yield "clippy.toml: " + " and ".join(PURE) + " have different rules"


def main():
    wrong = [*misplaced(), *impure()]
    for sentence in wrong:
        print(sentence)
    if not wrong:
        print(f"{sum(1 for _ in sources())} files stand where they belong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
