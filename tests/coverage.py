#!/usr/bin/env python3
"""Holds what lapscope wraps against the MPI standard and against the MPIs of this machine.

    tests/coverage.py            checks, and writes docs/coverage.md
    tests/coverage.py --check    checks, also that docs/coverage.md is what would be written

Run by the Python of build/mpi/standard, which has pympistandard: the standard's functions as data.
Fails when a function of the standard is neither in interposer/calls.def nor in interposer/passed_through.def, or in both; and
when an MPI exports a function of calls.def in a binding, or under a name, that lapscope does not export.
"""

import fnmatch
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pympistandard

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "coverage.md"
MPIS = {  # column: where its libraries are, C and Fortran
    "Open MPI 4.1": ["libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40"],
    "Open MPI 5.0": ["build/mpi/openmpi5/lib/libmpi.so.40"],
    "MPICH 4.0": ["libmpich.so.12", "libmpichfort.so.12"],
    "MPICH 5.0": ["build/mpi/mpich5/lib/libmpi.so.12"],
    "MPI-5 ABI": ["build/mpi/mpich5/lib/libmpi_abi.so.1"],
    "Intel MPI": ["build/mpi/intel/lib/libmpi.so.12", "build/mpi/intel/lib/libmpifort.so.12"],
}
BINDINGS = {"c": "C", "fortran": "F", "f08": "f08", "f08ts": "f08"}
ROLES = {
    "POST": "request",
    "INIT": "call; each start a request",
    "COMPLETE": "call, or unsuccessful test",
    "PROBE": "call, or unsuccessful test",
    "BLOCK": "call",
    "MANAGE": "call",
    "CONTROL": "call",
    "BOUND": "call",
}


def standard():
    """Names of all functions of the standard in C, large counts included, with whether Fortran has them."""
    pympistandard.use_api_version(1)
    functions = {}
    for procedure in pympistandard.PROCEDURES.values():
        express = procedure.express
        name = express.iso_c.name if express.iso_c else express.f90.name if express.f90 else express.f08.name
        functions[name] = bool(express.f90 or express.f08)
        if procedure.has_embiggenment() and express.embiggen and express.embiggen.iso_c:
            functions[express.embiggen.iso_c.name] = True
    return functions


def wrapped():
    """Name -> role, and symbol -> (name, binding), from the generator."""
    lines = subprocess.run(
        ["cargo", "run", "--quiet", "--release", "-p", "lapscope-generate", "--", "."],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    roles, symbols = {}, {}
    for line in lines:
        name, _family, role, binding, symbol = line.split("\t")
        roles[name] = role
        symbols[symbol] = (name, binding)
    return roles, symbols


def passed_through():
    """Pattern and reason, in order."""
    lines = (ROOT / "interposer" / "passed_through.def").read_text().splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]


def reason_for(name, reasons):
    return next((reason for pattern, reason in reasons if fnmatch.fnmatchcase(name, pattern)), None)


def find_library(name):
    """A path: relative to the project, or where the loader finds it; None when it is not there."""
    if "/" in name:
        path = ROOT / name
        return path if path.exists() else None
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    found = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", known, re.MULTILINE)
    return Path(found.group(1)) if found else None


def exported(libraries):
    """The symbols that an MPI's libraries define."""
    found = set()
    for library in libraries:
        lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True).stdout
        found.update(line.split()[-1].split("@")[0] for line in lines.splitlines())
    return found


def call_of(symbol, functions):
    """The C name behind an exported Fortran symbol of a known function, and its binding; None when it is none."""
    lower = symbol.lower().rstrip("_")
    large = lower.endswith("_large")
    lower = lower.removesuffix("_large")
    for suffix, binding in (("_f08ts", "f08"), ("_f08", "f08"), ("", "F")):
        if lower.endswith(suffix):
            base = lower.removesuffix(suffix) if suffix else lower
            name = functions.get(base + ("_c" if large else ""))
            return (name, binding) if name else None
    return None


def look_at(mpi, libraries, functions, roles, symbols, troubles):
    """Name -> bindings that this MPI has. Troubles: what of calls.def it has and lapscope does not export."""
    by_lower = {name.lower(): name for name in functions}
    bindings = defaultdict(set)
    for symbol in exported(libraries):
        if symbol in functions:
            bindings[symbol].add("C")
            continue
        found = call_of(symbol, by_lower) if re.match(r"(?i)^mpi_", symbol) and not symbol.startswith("MPI_T_") else None
        if not found or re.match(r"^MPI_[A-Z][a-z]", symbol):
            continue
        bindings[found[0]].add(found[1])
        if found[0] in roles and symbol not in symbols:
            troubles.append(f"{mpi} exports {symbol}, which lapscope does not wrap although it wraps {found[0]}")
    return bindings


def cell(bindings):
    return " ".join(word for word in ("C", "F", "f08") if word in bindings) or "-"


def row(name, what, columns):
    return f"| `{name}` | {what} | " + " | ".join(cell(found[name]) for found in columns.values()) + " |"


def document(functions, roles, reasons, columns):
    header = [
        "# What is recorded of each function of the MPI standard",
        "",
        "Made by `make coverage` from `interposer/calls.def`, `interposer/passed_through.def`, the standard's",
        "functions as the PyPI package `pympistandard` lists them, and the symbols that each MPI exports. An",
        "MPI's column says in which bindings it has the function: `C`, `F` (`mpif.h` and `use mpi`), `f08`",
        "(`use mpi_f08`, with or without TS 29113 descriptors), `-` not at all. What is recorded is recorded",
        "in every binding that is named; what is passed through goes from the application straight to MPI.",
        "",
        "*request*: a row from post to completion. *call*: a timed row. *unsuccessful test*: one that found",
        "nothing complete, or a probe that found no message, counted in the tally.",
        "",
    ]
    counts = f"{len(functions)} functions, large-count forms included: {sum(n in roles for n in functions)} recorded, " \
             f"{sum(n not in roles for n in functions)} passed through."
    lines = header + [counts, ""]
    names = " | ".join(columns)
    rule = "|---|---|" + "---|" * len(columns)
    lines += ["## Recorded", "", f"| function | as | {names} |", rule]
    lines += [row(name, ROLES[roles[name]], columns) for name in sorted(functions) if name in roles]
    lines += ["", "## Passed through on purpose", "", f"| function | because | {names} |", rule]
    lines += [row(name, reason_for(name, reasons), columns) for name in sorted(functions) if name not in roles]
    return "\n".join(lines) + "\n"


def main():
    functions, (roles, symbols), reasons = standard(), wrapped(), passed_through()
    troubles = [f"{name} is neither in calls.def nor in passed_through.def"
                for name in sorted(functions) if name not in roles and not reason_for(name, reasons)]
    troubles += [f"{name} of calls.def is not in the standard" for name in sorted(roles) if name not in functions]
    troubles += [f"passed_through.def: {pattern} matches nothing that is not recorded" for pattern, _ in reasons
                 if not any(fnmatch.fnmatchcase(n, pattern) and n not in roles for n in functions)]
    columns = {}
    for mpi, libraries in MPIS.items():
        found = [find_library(name) for name in libraries]
        if all(found):
            columns[mpi] = look_at(mpi, found, functions, roles, symbols, troubles)
        else:
            print(f"NOT CHECKED: {mpi} is not there")
    text = document(functions, roles, reasons, columns)
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(text)
    elif len(columns) == len(MPIS) and DOCUMENT.read_text() != text:
        troubles.append("docs/coverage.md is not what `make coverage` writes")
    for trouble in troubles:
        print(trouble)
    print(f"{len(functions)} functions of the standard, {len(columns)} MPIs, {len(troubles)} troubles")
    return bool(troubles)


if __name__ == "__main__":
    sys.exit(main())
