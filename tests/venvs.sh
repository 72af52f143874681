#!/bin/sh
# Python environments with mpi4py, one for each MPI whose compiler wrapper is here: build/venv-openmpi, build/venv-mpich.
set -eu
cd "$(dirname "$0")/.."

for mpi in openmpi mpich; do
    compiler=mpicc.$mpi
    directory=build/venv-$mpi
    command -v "$compiler" >/dev/null || continue
    [ -e "$directory/ready" ] && continue
    echo "mpi4py for $mpi"
    rm -rf "$directory"
    python3 -m venv "$directory"
    # Not from the cache: pip would take the wheel that it built for the other MPI.
    MPICC=$compiler MPI4PY_BUILD_MPICC=$compiler "$directory/bin/python" -m pip install --quiet \
        --disable-pip-version-check --no-cache-dir --no-binary mpi4py mpi4py </dev/null
    touch "$directory/ready"
done
