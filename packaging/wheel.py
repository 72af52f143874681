#!/usr/bin/env python3
"""Makes a wheel of an installed tree and of the Python package: wheel.py TREE DIRECTORY

The command goes among the scripts, the rest of the tree below the prefix of whatever environment pip installs into:
there they find each other as they do in the tree. Prints the wheel's path. SOURCE_DATE_EPOCH is the time of its files.
"""

import base64
import hashlib
import io
import os
import pathlib
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINE = os.environ.get("MACHINE") or os.uname().machine
TAGS = (f"py3-none-manylinux2014_{MACHINE}", f"py3-none-manylinux_2_17_{MACHINE}")
TAG = f"py3-none-manylinux2014_{MACHINE}.manylinux_2_17_{MACHINE}"


def quoted(text):
    """The value of `key = "value"` or `key = ["value", ...]`, a line of a TOML file that needs no more than that."""
    return [part for part in text.split('"')[1::2]]


def project():
    """What pyproject.toml says of the package: table -> key -> list of texts. (tomllib is newer than Python 3.9.)"""
    table, tables = None, {}
    for line in (ROOT / "python/pyproject.toml").read_text("utf-8").splitlines():
        if line.startswith("["):
            table = tables.setdefault(line.strip("[]"), {})
        elif " = " in line and not line.startswith("#"):
            key, value = line.split(" = ", 1)
            table[key] = quoted(value)
    return tables


def metadata(tables):
    about = tables["project"]
    lines = [
        "Metadata-Version: 2.1",
        "Name: lapscope",
        f"Version: {about['version'][0]}",
        "Summary: Reports how much MPI communication was hidden behind computation, and why the rest was not",
        "License: BSD-3-Clause",
        f"Requires-Python: {about['requires-python'][0]}",
        "Classifier: Operating System :: POSIX :: Linux",
        "Description-Content-Type: text/markdown",
    ]
    # The command needs none of these: a machine that only records does not have to install them.
    extras = {"python": [], **tables["project.optional-dependencies"]}
    for extra, requirements in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        for requirement in about["dependencies"] + requirements:
            lines.append(f'Requires-Dist: {requirement}; extra == "{extra}"')
    return "\n".join(lines) + "\n\n" + (ROOT / "python/README.md").read_text("utf-8")


def contents(tree, version, tables):
    """Pairs of a name in the wheel and (bytes, whether it can be executed)."""
    data, info = f"lapscope-{version}.data", f"lapscope-{version}.dist-info"
    package = ROOT / "python/src"
    for path in package.glob("lapscope/**/*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(package).as_posix(), (path.read_bytes(), False)
    for path in tree.glob("**/*"):
        name = path.relative_to(tree).as_posix()
        if path.is_file() and not name.startswith(("share/doc/", "share/modulefiles/")):
            place = "scripts/lapscope" if name == "bin/lapscope" else f"data/{name}"
            yield f"{data}/{place}", (path.read_bytes(), os.access(path, os.X_OK))
    yield f"{info}/licenses/LICENSE", ((tree / "share/doc/lapscope/LICENSE").read_bytes(), False)
    parts = tree / "share/doc/lapscope/lapscope.cdx.json"
    yield f"{info}/sboms/lapscope.cdx.json", (parts.read_bytes(), False)
    yield f"{info}/METADATA", (metadata(tables).encode(), False)
    wheel = ["Wheel-Version: 1.0", "Generator: lapscope", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in TAGS)]
    yield f"{info}/WHEEL", ("\n".join(wheel).encode() + b"\n", False)


def record(files, name):
    """RECORD, which has a line for each file and one without a sum for itself."""
    text = io.StringIO()
    for path, (content, _) in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        text.write(f"{path},sha256={digest},{len(content)}\n")
    text.write(f"{name},,\n")
    return text.getvalue().encode()


def write(path, files):
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # zip begins in 1980
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (content, executable) in files:
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=9)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tree, directory = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tables = project()
    version = tables["project"]["version"][0]
    files = sorted(contents(tree, version, tables))
    name = f"lapscope-{version}.dist-info/RECORD"
    files.append((name, (record(files, name), False)))
    path = directory / f"lapscope-{version}-{TAG}.whl"
    write(path, files)
    print(path)


if __name__ == "__main__":
    main()
