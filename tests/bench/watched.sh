#!/usr/bin/env bash
# Whether a program is slower while it is watched: tests/bench/watched.sh OBSERVE PRELOAD [RUNS]
#
# Runs tests/apps/full_speed.c for a second with nobody looking and with a look every 10 ms, in turn, and prints the nanoseconds of a
# round in each, then the medians and their ratio. OBSERVE: the example `observe` of crates/data, built with --release; PRELOAD:
# liblapscope.so. MPIRUN and MPICC choose the MPI. The reader needs a processor of its own, or the ranks lose what it takes.
set -euo pipefail
cd "$(dirname "$0")/../.."
observe=$(realpath "$1") preload=$(realpath "$2") runs=${3:-7}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
${MPICC:-mpicc} -O2 -o "$place/full_speed" tests/apps/full_speed.c

round() { # round WATCHED: nanoseconds
    local run=$place/run
    rm -rf "$run"
    LD_PRELOAD=$preload LAPSCOPE_DIR=$run LAPSCOPE_CONVERT=off timeout 60 ${MPIRUN:-mpirun} -n 2 "$place/full_speed" 1 >"$place/took" &
    local program=$!
    if [ "$1" = watched ]; then
        while kill -0 $program 2>/dev/null && [ ! -e "$run/rank-1.spool" ]; do sleep 0.01; done
        timeout 30 "$observe" "$run" 80 10 2>/dev/null || true
    fi
    wait $program
    cat "$place/took"
}

for _ in $(seq "$runs"); do
    for how in alone watched; do
        took=$(round $how)
        echo "$how $took"
        echo "$took" >>"$place/$how"
    done
done
median() { sort -n "$place/$1" | sed -n "$(((runs + 1) / 2))p"; }
awk -v alone="$(median alone)" -v watched="$(median watched)" \
    'BEGIN { printf "a round: alone %d ns, watched %d ns, ratio %.3f\n", alone, watched, watched / alone }'
