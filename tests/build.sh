#!/usr/bin/env bash
# Builds the recorders (CMake) and the command (cargo) side by side: `make build`.
#
#   tests/build.sh            messages of both go to standard output
#   tests/build.sh LOG        messages go to LOG, and how far it is to standard output; LOG is printed where it fails
#   tests/build.sh recorders  the recorders alone
#   tests/build.sh LOG mpicc  no more than a demo with that compiler wrapper needs: one recorder, a command without Parquet
#                             and screen of a running job, whose analysis is not optimised; crates beneath are as always
#
# JOBS: processors for each of the two; CARGO: the cargo to use; PROFILE: cargo's, `release` where nothing is said.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
cargo=${CARGO:-cargo}
profile=${PROFILE:-release}
targets=(all) features=() levels=()
if [ $# -gt 1 ]; then
    targets=("for-$2") features=(--no-default-features)
    for crate in lapscope lapscope-advise lapscope-experiments lapscope-launch lapscope-measure lapscope-predict lapscope-report lapscope-show lapscope-timelines lapscope-trace lapscope-watch; do
        levels+=(--config "profile.$profile.package.$crate.opt-level=0")
    done
fi

recorders() {
    local abi=$PWD/build/mpi/mpich5/bin/mpicc_abi settings=()
    # that of the standard ABI, where the tests have brought it; else what a user has set stays
    if [ -x "$abi" ]; then settings=(-DLAPSCOPE_MPICC="$abi"); fi
    cmake -S interposer -B build/interposer "${settings[@]}" &&
        cmake --build build/interposer -j "$jobs" --target "${targets[@]}"
}

# Ends with the first that fails, whose messages are then the last ones.
both() {
    recorders &
    "$cargo" build --profile "$profile" --package lapscope "${features[@]}" "${levels[@]}" --bin lapscope --jobs "$jobs" &
    wait -n && wait -n
}

# "recorders 45 %, command 61 of 92 crates"
how_far() { # how_far LOG CRATES
    local recorders crates
    recorders=$(grep -o '^\[ *[0-9]*%\]' "$1" | tail -n 1 | tr -dc 0-9) || true
    crates=$(grep -c '^ *Compiling ' "$1") || true
    if grep -q '^ *Finished ' "$1"; then crates=$2; fi
    echo "recorders ${recorders:-0} %, command $crates of $2 crates"
}

tell() { # tell LOG: until the build has ended
    local crates last='' now
    crates=$("$cargo" tree --package lapscope "${features[@]}" --prefix none --edges normal,build 2>/dev/null | sed 's/ (.*//' | sort -u | wc -l) || true
    while kill -0 $build 2>/dev/null; do
        now=$(how_far "$1" "$crates")
        if [ -t 1 ]; then
            printf '\r\033[K  %3d s  %s' $SECONDS "$now"
        elif [ $((SECONDS % 15)) = 0 ] && [ "$now" != "$last" ]; then
            printf '  %3d s  %s\n' $SECONDS "$now"
            last=$now
        fi
        sleep 1
    done
    if [ -t 1 ]; then printf '\r\033[K'; fi
}

if [ "${1:-}" = recorders ]; then
    recorders
    exit
fi

# The build is a group of processes of its own: all of it ends where this is interrupted.
set -m
if [ $# -gt 0 ]; then
    mkdir -p "$(dirname "$1")"
    both >"$1" 2>&1 &
else
    both &
fi
build=$!
set +m
trap 'kill -- -$build 2>/dev/null' EXIT
if [ $# -gt 0 ]; then tell "$1"; fi
status=0
wait $build || status=$?
if [ $status != 0 ]; then kill -- -$build 2>/dev/null || true; fi
trap - EXIT
if [ $# -gt 0 ]; then
    if [ $status != 0 ]; then cat "$1"; else echo "  built in $SECONDS s"; fi
fi
exit $status
