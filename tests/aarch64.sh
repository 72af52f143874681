#!/usr/bin/env bash
# lapscope for aarch64, tried on a machine of another kind: `make aarch64`, an hour. In build/aarch64 are Debian's MPIs for
# aarch64 and an emulator; nothing is installed for it but cross compilers. Each part prints what passed and what failed; the
# last line has the sum.
#
#   units      the recorder's unit tests
#   apps       the programs of tests/apps, with the rows that they give on every other machine
#   signed     a program whose return addresses are signed (pointer authentication), against the same without
#   tests      further tests of tests/tests, where a rank dies or is interrupted
#   portable   what `MACHINE=aarch64 make dist` makes: its recorders under both MPIs, its command, its wheel
#
# PARTS: those to do; LAPSCOPE_TEST_LAUNCHES: how many launches at once
set -uo pipefail
cd "$(dirname "$0")/.."
parts=${PARTS:-units apps signed tests portable}
base=$PWD/build/aarch64
root=$base/arm64
mpis="openmpi mpich"
passed=0 failed=0
mkdir -p "$base"

sum() { # sum NAME PASSED FAILED
    passed=$((passed + $2))
    failed=$((failed + $3))
    echo "-- $1: $2 passed, $3 failed"
}

check() { # check NAME COMMAND...: one thing, which is in order when the command is
    local name=$1
    shift
    if "$@" >"$base/said" 2>&1; then
        echo "PASSED $name"
        passed=$((passed + 1))
    else
        echo "FAILED $name"
        sed 's/^/    /' "$base/said"
        failed=$((failed + 1))
    fi
}

recorder() {
    local libraries=$root/usr/lib/aarch64-linux-gnu
    cmake -S interposer -B "$base/interposer" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_C_COMPILER="$base/bin/gcc" -DCMAKE_ASM_COMPILER="$base/bin/gcc" -DLAPSCOPE_LIB_DIR="$base/lib" \
        -DLAPSCOPE_MPICC="$base/bin/mpicc.openmpi;$base/bin/mpicc.mpich" \
        -DSQLITE3_LIBRARY="$libraries/libsqlite3.so" >"$base/cmake.log" &&
        cmake --build "$base/interposer" -j "${JOBS:-$(nproc)}" --target all units >"$base/build.log" 2>&1 ||
        { grep -h -A5 error "$base/cmake.log" "$base/build.log" >&2; return 1; }
}

# Trampolines have a test of their own in `make check`, signatures and rooms are of no machine.
units() {
    local others='watchpoint|mark|memory|watchdog|failures'
    LAPSCOPE_TEST_HERE=1 timeout -k 30 1200 tests/aarch64/enter.sh ctest --test-dir "$base/interposer" --output-on-failure \
        -E "$others|trampolines|signatures|rooms" >"$base/units.log" 2>&1
    local line
    line=$(grep -a 'tests passed, .* failed out of' "$base/units.log") || { cat "$base/units.log"; sum units 0 1; return; }
    grep -a -A20 'The following tests FAILED' "$base/units.log"
    # "95% tests passed, 1 tests failed out of 20"
    sum units $(($(sed 's/.* out of //' <<<"$line") - $(sed 's/.*passed, \([0-9]*\).*/\1/' <<<"$line"))) \
        "$(sed 's/.*passed, \([0-9]*\).*/\1/' <<<"$line")"
    echo "SKIPPED unit_watchpoint: the emulator has no perf_event_open"
    echo "SKIPPED unit_mark, unit_memory: the emulator has no process_vm_readv"
    echo "SKIPPED unit_watchdog: the emulator has a thread of its own in each process"
    echo "SKIPPED unit_failures: the namespace has one user, and so none without rights"
}

launched() { # launched SUITE [WORD...]: a suite of tests/tests under the emulated MPIs
    local log=$base/launched-${1//:/-}.log test=$1 result
    shift
    LAPSCOPE_TEST_MPIS=openmpi-aarch64,mpich-aarch64 LAPSCOPE_TEST_ALL=1 LAPSCOPE_LIB_DIR=${LIBRARIES:-$base/lib} RUST_BACKTRACE=0 \
        timeout -k 30 3000 cargo test -p lapscope-tests --test launched --no-fail-fast -- "$test::" "$@" >"$log" 2>&1
    result=$(grep -a '^test result:' "$log") || { cat "$log"; sum "$test" 0 1; return; }
    if ! grep -q ' 0 failed' <<<"$result"; then sed -n '/^failures:/,$p' "$log"; fi
    grep -a 'NOT TESTED\|SKIPPED' "$log" | sort -u
    sum "$test" "$(sed 's/.* \([0-9]*\) passed.*/\1/' <<<"$result")" "$(sed 's/.* \([0-9]*\) failed.*/\1/' <<<"$result")"
}

apps() {
    # the forms in which `lapscope run` starts what it is given are tried with the portable command
    echo "SKIPPED spawn: it does not end within a minute in the emulator; the reason is not known"
    launched apps --skip run:: --skip spawn
    launched fortran
}

further() {
    launched deaths
    launched inject::known
}

# Frames by their depth, and requests: of a program from whose error handlers it jumps, and that is unwound through.
recorded() { # recorded MPI PROTECTION
    local program=$base/error_jump-$1-$2 run=$base/run-$1-$2 many=
    [ "$1" = openmpi ] && many=--oversubscribe
    rm -rf "$run"
    "$base/bin/mpicc.$1" -D_GNU_SOURCE -O1 -Wno-stringop-overflow -mbranch-protection="$2" tests/apps/error_jump.c -o "$program" &&
        LAPSCOPE_TEST_PRELOAD=$base/lib/liblapscope.so LAPSCOPE_DIR=$run OMPI_ALLOW_RUN_AS_ROOT=1 \
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 10 300 "$base/bin/mpirun.$1" $many -n 2 "$program" >"$run.out" 2>&1 &&
        python3 -c 'import sqlite3, sys
for rank in sys.argv[1:]:
    for query in ("select depth, count(*) from frame group by depth", "select count(*), sum(unknown_requests) from request, rank"):
        print(*sqlite3.connect(rank).execute(query))' "$run/rank-0.db" "$run/rank-1.db" || { cat "$run.out"; return 1; }
}

as_without() { # as_without MPI
    recorded "$1" none >"$base/unsigned.txt" && recorded "$1" standard >"$base/signed.txt" &&
        grep -q '(6, 0)' "$base/signed.txt" && diff "$base/unsigned.txt" "$base/signed.txt"
}

signed() {
    for mpi in $mpis; do check "signed return addresses, $mpi" as_without "$mpi"; done
}

# Topics of `make dist-check` name what passed and what failed, and so does this one.
portable() {
    MACHINE=aarch64 packaging/dist.sh >"$base/dist.log" 2>&1 || { tail -n 30 "$base/dist.log"; sum "portable build" 0 1; return; }
    local result=0
    packaging/tests/aarch64.sh >"$base/portable.log" 2>&1 || result=1
    cat "$base/portable.log"
    sum "portable build" "$(grep -c '^PASSED ' "$base/portable.log")" $result
    LIBRARIES=$(echo "$PWD"/build/dist-aarch64/tree/lapscope-*-linux-aarch64/lib/lapscope) launched apps --exact any_source error_jump waitall
}

tests/aarch64/prepare.sh && recorder && make --no-print-directory build >"$base/native.log" 2>&1 || { echo "1 failed: it is not built"; exit 1; }
for part in $parts; do
    case $part in
    tests) further ;;
    *) "$part" ;;
    esac
done
echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" = 0 ]
