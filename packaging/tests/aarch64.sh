#!/bin/sh
# What `MACHINE=aarch64 packaging/dist.sh` has made, as its user would meet it, on a machine of another kind: in an emulator,
# under Debian's MPIs for aarch64. The command looks at the machine, records two ranks and reports; pip installs the wheel.
set -eu
cd "$(dirname "$0")/../.."
export MACHINE=aarch64
. packaging/testing.sh
[ "$cross" ] || { skipped "this machine is an aarch64, and build/dist is tried by the other topics"; exit 0; }
needs unshare apt-get
tests/aarch64/prepare.sh >"$scratch/log" 2>&1 || { skipped "no emulator: $(tail -n 1 "$scratch/log")"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

emulated() { timeout -k 10 600 tests/aarch64/enter.sh "$@" 2>&1; }

packaging/check.sh "$tree" || failed "$tree does not run everywhere"
passed "no symbol newer than glibc $glibc"

said=$(emulated "$tree/bin/lapscope" --version) || failed "lapscope --version: $said"
expect "lapscope --version" "$said" "^lapscope $version\$"
passed "lapscope --version"

# Its code is 3 where something is missing, which would be ours: MPIs are there.
said=$(emulated "$tree/bin/lapscope" doctor) || failed "lapscope doctor: code $?, $said"
expect "lapscope doctor" "$said" '^nothing is missing'
for mpi in openmpi mpich; do expect "lapscope doctor" "$said" "mpirun\.$mpi\b.*: recorder $mpi\$"; done
expect "lapscope doctor" "$said" 'clock .*generic timer, constant rate of [0-9.]+ MHz'
passed "lapscope doctor"

launcher() { # launcher MPI: of two ranks
    case $1 in openmpi) echo "mpirun.openmpi --oversubscribe -n 2" ;; *) echo "mpirun.$1 -n 2" ;; esac
}

# runs MPI WORD...: tests/apps/waitall.c ends well, and prints what it should
runs() {
    what=$1
    shift
    said=$(emulated "$@") || failed "$what: $said"
    expect "$what" "$said" '^10 rounds$'
}

# has_rows NAME COMMAND: those that stand in waitall.c, of both ranks, in $run; and a report can be made of them
has_rows() {
    rows=$(emulated "$2" sql "$run" "select count(*), count(completion_id) from request" --format csv) ||
        failed "lapscope sql, $1: $rows"
    expect "rows, $1" "$rows" '^40,40$'
    said=$(emulated "$2" report "$run") || failed "lapscope report, $1: $said"
    expect "lapscope report, $1" "$said" '^2 ranks on '
}

# recorded MPI COMMAND
recorded() {
    run=$scratch/run
    program=$scratch/waitall.$1
    # shellcheck disable=SC2046 # words
    runs "without lapscope, $1" $(launcher "$1") "$program"
    rm -rf "$run"
    # shellcheck disable=SC2046
    runs "lapscope run around the launcher, $1" "$2" run --dir "$run" -- $(launcher "$1") "$program"
    has_rows "around the launcher, $1" "$2"
    same_report "$1" "$2"
    rm -rf "$run"
    # shellcheck disable=SC2046
    runs "lapscope run as every rank, $1" $(launcher "$1") "$2" run --dir "$run" -- "$program"
    has_rows "as every rank, $1" "$2"
}

# The command of this machine reads the same out of a run, but for names out of libraries that only the emulated one has.
native=$PWD/target/release/lapscope
same_report() { # same_report MPI COMMAND
    [ -x "$native" ] || { skipped "the report of this machine's command, $1: no $native"; return; }
    tests/aarch64/enter.sh "$2" report --format json "$run" >"$scratch/there.json" &&
        "$native" report --format json "$run" >"$scratch/here.json" && python3 -c '
import json, sys
there, here = (json.load(open(path)) for path in sys.argv[1:])
here["problems"] = [problem for problem in here["problems"] if problem["kind"] != "no_symbols"]
sys.exit(there != here)' "$scratch/there.json" "$scratch/here.json" ||
        failed "another report than of $native, $1: $(diff "$scratch/there.json" "$scratch/here.json")"
}

for mpi in openmpi mpich; do
    "$cross/bin/mpicc.$mpi" -D_GNU_SOURCE -O1 -g -Wno-stringop-overflow tests/apps/waitall.c -o "$scratch/waitall.$mpi"
    recorded $mpi "$tree/bin/lapscope"
    passed "lapscope run and report, $mpi"
done

wheel=$(echo "$out"/lapscope-"$version"-py3-none-*manylinux_2_17_aarch64.whl)
[ -e "$wheel" ] || failed "no wheel in $out"
venv=$scratch/venv
pip=$(cd "$cross/arm64" && echo usr/share/python-wheels/pip-*.whl)
said=$(emulated python3 -m venv --without-pip "$venv" && emulated "$venv/bin/python" "/$pip/pip" -q install --no-index "$wheel") ||
    failed "pip install: $said"
packaging/check.sh "$venv" || failed "what pip has installed does not run everywhere"
recorded mpich "$venv/bin/lapscope"
passed "pip install of $(basename "$wheel"), lapscope run and report"
