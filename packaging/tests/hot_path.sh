#!/bin/bash
# What the recorders of `make dist` cost on the path of each message beside those of `make build`: the two in turn, so that
# what else the machine does meets both. One line for each MPI and size: medians over the turns of nanoseconds a message,
# the median of the ratios of neighbouring turns with its quartiles, and instructions a request as callgrind counts them.
#
#   packaging/tests/hot_path.sh [TURNS]      default: 11
set -euo pipefail
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs mpicc.openmpi mpicc.mpich
turns=${1:-11}
native=$PWD/build/lib
portable=$tree/lib/lapscope
slower=
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -e "$native/liblapscope.so" ] || { skipped "no recorders in $native; \`make build\` makes them"; exit 0; }

once() { # once MPI LIBRARIES BYTES: nanoseconds of a recorded message, the median over one run
    LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$scratch/run \
        timeout 120 "mpirun.$1" -n 2 env LD_PRELOAD="$2/liblapscope.so" "$scratch/message_rate.$1" "$3" 64 41 |
        sed -n 's/.* with \([0-9.]*\) .*/\1/p'
    rm -rf "$scratch/run"
}

count() { # count MPI LIBRARIES WINDOWS: instructions of one rank with messages to itself
    LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$scratch/run LD_PRELOAD=$2/liblapscope.so \
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$scratch/message_rate.$1" 8 64 "$3" seen 2>&1 |
        sed -n 's/.*Collected : //p'
    rm -rf "$scratch/run"
}

verdict='
import statistics, sys
turns = [tuple(map(float, line.split())) for line in sys.stdin]
native, portable = (statistics.median(each) for each in zip(*turns))
low, ratio, high = statistics.quantiles([b / a for a, b in turns], n=4)
print(f"{native:.1f} ns native, {portable:.1f} ns portable, ratio {ratio:.3f} (quartiles {low:.3f} to {high:.3f})")
sys.exit(ratio > 1.05)'

for mpi in openmpi mpich; do
    "mpicc.$mpi" -O2 -w -o "$scratch/message_rate.$mpi" tests/bench/message_rate.c
    for bytes in 8 4096; do
        for _ in $(seq "$turns"); do
            echo "$(once $mpi "$native" $bytes) $(once $mpi "$portable" $bytes)"
        done >"$scratch/turns"
        line=$(python3 -c "$verdict" <"$scratch/turns") || slower="$slower $mpi/$bytes"
        printf '  %-8s %5d bytes: %s\n' $mpi $bytes "$line"
    done
    if command -v valgrind >/dev/null; then
        for libraries in "$native" "$portable"; do
            echo "$libraries $(count $mpi "$libraries" 250) $(count $mpi "$libraries" 500)"
        done | awk -v mpi=$mpi '{ printf "  %-8s %4.0f instructions a request, MPI included (%s)\n", mpi, ($3 - $2) / 16000, $1 }' |
            sed "s|$PWD/||"
    fi
done
[ -z "$slower" ] || failed "more than 1.05 times as long, MPI and bytes:$slower"
passed "at most 1.05 times as long under both MPIs"
