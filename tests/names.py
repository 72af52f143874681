#!/usr/bin/env python3
"""Holds names of types against each other: at most two files of the Rust code define a type of one name.

    tests/names.py                names what is wrong; the exit code tells whether anything is

Counted are structs, enums, unions, traits and types that stand at the top of a module that is written by hand; not
what stands inside of functions or impls, and no tests.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["crates/*/src", "cli/src", "interposer/generate/src"]
MOST = 2

# rustfmt keeps these at the begin of a line, and nothing else that defines a type
DEFINITION = re.compile(r"(?m)^(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait|type) (\w+)")
TEST_MODULE = re.compile(r"(?m)^#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod (\w+);")


def sources():
    return sorted(path for folder in FOLDERS for source in ROOT.glob(folder) for path in source.rglob("*.rs"))


def module_folder(source):
    """Where the modules of a file lie."""
    return source.parent if source.name in ("lib.rs", "main.rs", "mod.rs") else source.with_suffix("")


def tests(files):
    """The files, and the folders, of modules that only tests have."""
    modules = [module_folder(file) / name for file in files for name in TEST_MODULE.findall(file.read_text("utf-8"))]
    return {path for module in modules for path in (module, module.with_suffix(".rs"))}


def definitions():
    """The files that define a type of each name."""
    files = sources()
    left_out = tests(files)
    names = defaultdict(set)
    for file in files:
        if left_out.isdisjoint((file, *file.parents)):
            for name in DEFINITION.findall(file.read_text("utf-8")):
                names[name].add(str(file.relative_to(ROOT)))
    return names


def main():
    names = definitions()
    shared = {name: sorted(files) for name, files in sorted(names.items()) if len(files) > MOST}
    for name, files in shared.items():
        print(f"{name} is defined in {len(files)} files, at most {MOST}: {', '.join(files)}")
    if not shared:
        print(f"all {len(names)} names of types hold")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
