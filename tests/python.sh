#!/bin/sh
# The Python package, held against types and tested on a made run, in an environment of its own: build/python.
# What cannot be installed is named and not tested.
#
#   tests/python.sh environment   makes or renews it
#   tests/python.sh               tests
set -eu
cd "$(dirname "$0")/.."
directory=$PWD/build/python
python=$directory/bin/python
log=build/python.log

pip() { "$python" -m pip --disable-pip-version-check --quiet "$@" >>"$log" 2>&1 </dev/null; }

# Requirements are looked at again when they have changed; the package itself is always the present one.
environment() {
    extras=dask,test${LAPSCOPE_TEST_ALL:+,spark} # Spark is 400 MB, and needs Java
    wanted="$extras $(cksum <python/pyproject.toml)"
    if [ "$(cat "$directory/ready" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$directory"
        mkdir -p build
        : >"$log"
        python3 -m venv "$directory" >>"$log" 2>&1 && pip install "./python[$extras]" && echo "$wanted" >"$directory/ready"
    else
        # needs nothing from elsewhere: when that fails it is the package
        pip install --no-deps --no-build-isolation --force-reinstall ./python || {
            tail "$log"
            exit 1
        }
    fi
}

if ! environment; then
    rm -rf "$directory/ready"
    echo "NOT TESTED: the Python package, as its environment could not be made; $log has the reason"
    exit 0
fi
if [ "${1:-}" = environment ]; then exit 0; fi

made=$directory/made
large=$directory/large
rm -rf "$made" "$large"
# eight ranks on three nodes, neighbours in a grid, one of them slow
eight_ranks() { # eight_ranks DIRECTORY REQUESTS
    ${CARGO:-cargo} run --quiet -p lapscope --example synthetic -- "$1" 8 "$2" --ranks-per-node 3 --stencil 2 \
        --collective-every 40 --slow-rank 3
}
eight_ranks "$made" 200
eight_ranks "$large" 20000
${CARGO:-cargo} build --quiet -p lapscope --bin lapscope
rm -rf "$directory/jobs"
${CARGO:-cargo} run --quiet -p lapscope-fixture --example jobs -- "$directory/jobs" 100
export LAPSCOPE_TEST_RUN="$made" LAPSCOPE_TEST_LARGE="$large" LAPSCOPE_TEST_JOBS="$directory/jobs" LAPSCOPE_BIN="$PWD/target/debug/lapscope" PYTHONDONTWRITEBYTECODE=1
export LAPSCOPE_CALIBRATION_DIR="$directory/none"
cd python
"$python" -m mypy src tests
"$python" -m pytest "$@"
