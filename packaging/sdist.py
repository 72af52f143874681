#!/usr/bin/env python3
"""Makes the source distribution that pip takes where no wheel fits: sdist.py DIRECTORY WHEEL...

It has no sources, and says in a sentence why nothing can be installed; without it pip says "no matching distribution".
Metadata is that of the wheel. Prints its path. SOURCE_DATE_EPOCH is the time of its files.
"""

import gzip
import io
import os
import pathlib
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
MACHINES = ("aarch64", "x86_64")
PROJECT = """[build-system]
requires = []
build-backend = "no_wheel"
backend-path = ["."]
"""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    directory, *wheels = map(pathlib.Path, sys.argv[1:])
    version = wheels[0].name.split("-")[1]
    machines = sorted((machine for machine in MACHINES if any(machine in wheel.name for wheel in wheels)), reverse=True)
    with zipfile.ZipFile(wheels[0]) as archive:
        metadata = archive.read(f"lapscope-{version}.dist-info/METADATA")
    backend = (HERE / "sdist/no_wheel.py").read_text("utf-8")
    backend = backend.replace("@VERSION@", version).replace("@MACHINES@", " or ".join(machines))
    files = {
        "PKG-INFO": metadata,
        "no_wheel.py": backend.encode(),
        "pyproject.toml": PROJECT.encode(),
        "setup.py": b"import no_wheel  # for pip before 10\n\nno_wheel.refuse()\n",
    }
    path = directory / f"lapscope-{version}.tar.gz"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"lapscope-{version}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    print(path)


if __name__ == "__main__":
    main()
