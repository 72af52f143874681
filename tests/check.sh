#!/usr/bin/env bash
# Builds, then runs every suite, also when one fails: `make check`; `make check-all` with what that leaves out
# (LAPSCOPE_TEST_ALL=1).
#
# What takes processors runs beside what waits for launchers, which is most of the time of a launch; what measures runs
# alone, behind the rest. At the end: how long each suite took, which tests took longest, what was not tested, what was
# left out, the names of what failed, and on the last line the total.
set -uo pipefail
cd "$(dirname "$0")/.."

kept=build/check
rm -rf $kept build/check-total
mkdir -p $kept
TIMEFORMAT=%U+%S
: >$kept/summary

# suite NAME COUNTER command...: COUNTER finds the names of failed tests and the numbers in the output, which is kept, and
# printed where something failed.
suite() {
    local name=$1 counter=$2 begin=$SECONDS status p f s
    local log=$kept/${name//[^a-zA-Z0-9]/-}
    shift 2
    { time "$@" >"$log.log" 2>&1 </dev/null; } 2>"$log.time"
    status=$?
    "$counter" "$name" "$status" <"$log.log" >"$log.found"
    read -r p f s < <(tail -n 1 "$log.found")
    sed '$d' "$log.found" >"$log.failed"
    # a command that fails without a failed test (it did not compile, it crashed) counts as one
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then
        f=1
        echo "$name: ended with code $status" >>"$log.failed"
    fi
    if [ "$f" != 0 ]; then printf '== %s\n%s\n' "$name" "$(cat "$log.log")"; fi
    echo "$((SECONDS - begin)) $(cat "$log.time") $p $f $s $name" >>$kept/summary
    echo "-- $name: $p passed, $f failed, $((SECONDS - begin)) s"
}

# Each prints "SUITE: TEST" for what failed, and last: passed, failed, skipped.

count_one() {
    if [ "$2" = 0 ]; then echo 1 0 0; else printf '%s\n0 1 0\n' "$1"; fi
}

count_cargo() {
    awk -v name="$1" '
        /^test .* \.\.\. FAILED/ { print name ": " $2 }
        /^test result:/ { for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) p += $(i-1)
            if ($i ~ /^failed/) f += $(i-1)
            if ($i ~ /^ignored/) s += $(i-1)
        } }
        END { print p + 0, f + 0, s + 0 }'
}

count_ctest() {
    awk -v name="$1" '
        /^The following tests FAILED:/ { listing = 1; next }
        listing && / - / { print name ": " $3 }
        /tests passed, .* tests? failed out of/ { f += $4; p += $NF - $4 }
        END { print p + 0, f + 0, 0 }'
}

count_pytest() {
    awk -v name="$1" '
        /^FAILED|^ERROR/ { print name ": " $2 }
        /^([0-9]+ [a-z]+,? )+in [0-9.]+s/ { for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) p += $(i-1)
            if ($i ~ /^(failed|errors?)/) f += $(i-1)
            if ($i ~ /^skipped/) s += $(i-1)
        } }
        END { print p + 0, f + 0, s + 0 }'
}

# Time is bounded, whatever hangs. With times of tests, which libtest prints where RUSTC_BOOTSTRAP is set for it alone.
cargo_test() {
    timeout -k 30 3600 cargo test --no-fail-fast "$@" -- -Z unstable-options --report-time
}

# The compiler warns of nothing, clippy's warnings among it: what was compiled here says so each time, changed or not.
no_warnings() {
    ! grep -B1 -A12 '^warning' $kept/build.log
}

unit_tests() { # unit_tests BUILD_DIRECTORY
    timeout -k 30 900 tests/hostile.sh ctest --test-dir "$1" -j 2 --output-on-failure
}

units_in_c() {
    cmake --build build/interposer --target units >/dev/null && unit_tests build/interposer
}

sanitized() { # sanitized SANITIZERS
    cmake -S interposer/test -B "build/sanitize-${1%%,*}" -DLAPSCOPE_SANITIZE="$1" >/dev/null &&
        cmake --build "build/sanitize-${1%%,*}" >/dev/null &&
        unit_tests "build/sanitize-${1%%,*}"
}

without_launchers() {
    suite "rustfmt" count_one cargo fmt --all --check
    suite "documents" count_one python3 tests/documents.py
    suite "names of types" count_one python3 tests/names.py
    suite "crates in their places" count_one python3 tests/house.py
    suite "warnings of rustc and clippy" count_one no_warnings
    suite "units in Rust" count_cargo cargo_test --workspace --lib --bins
    suite "command line" count_cargo cargo_test --workspace --test command
    suite "page in a browser" count_cargo timeout -k 30 600 tests/browser.sh
}

# Neither of launchers nor of the command: much of it waits, for files that compile one after the other and for time to pass.
of_libraries() {
    suite "units in C" count_ctest units_in_c
    suite "units in C, AddressSanitizer and UndefinedBehaviorSanitizer" count_ctest sanitized address,undefined
    suite "units in C, ThreadSanitizer" count_ctest sanitized thread
    if [ -x build/mpi/standard/bin/python ]; then
        suite "calls against the standard" count_one build/mpi/standard/bin/python tests/coverage.py --check
    else
        echo "NOT TESTED: calls against the standard (no pympistandard)" | tee $kept/standard.log
    fi
    suite "Python package" count_pytest timeout -k 30 900 tests/python.sh
}

# Tests that measure are alone; the rest of the suites, modules of tests/tests, run beside what has no launchers.
measuring="overlap truth field thresholds tune gain auto reach"

beside_others() {
    local suite
    sed -n 's/^mod \(.*\);/\1/p' tests/tests/main.rs | while read -r suite; do
        case " $measuring " in *" $suite "*) ;; *) echo "$suite" ;; esac
    done
}

# launched SUITE...: programs under real launchers. Not by cargo, which would wait for what it compiles meanwhile.
launched() {
    local suite
    for suite in "$@"; do suite "launched: $suite" count_cargo launched_suite "$suite"; done
}

# Two suites at a time: what a test does behind its launches, and the last test of a suite, leave room.
launched_beside_others() {
    local suite running=0
    for suite in $(beside_others); do
        if [ $((running += 1)) -gt 2 ]; then wait -n; fi
        launched "$suite" &
    done
    wait
}

launched_suite() (
    cd tests && timeout -k 30 3600 ./hostile.sh "$(cat ../$kept/launched)" "$1::" -Z unstable-options --report-time
)

# One build for tests, clippy and the command, which has checks of arithmetic so: clippy's driver is the compiler and has more to
# say.
if clippy-driver --version >/dev/null 2>&1; then
    export RUSTC_WORKSPACE_WRAPPER=clippy-driver
else
    echo "NOT TESTED: warnings of clippy (rustup component add clippy)" | tee $kept/clippy.log
fi
export PROFILE=dev LAPSCOPE_BIN=$PWD/target/debug/lapscope

# Downloads beside compilers; `make check` has fetched what the build needs of them. One cargo builds the command and all tests:
# of each selection of packages it would compile what they depend on once more, with other features.
prepare() {
    { tests/mpis.sh && tests/python.sh environment && tests/browser.sh environment; } >$kept/mpis.log 2>&1 &
    local mpis=$!
    tests/build.sh recorders &
    local recorders=$! status=0
    cargo test --workspace --no-run --message-format json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*\/launched-[^"]*\)".*/\1/p' >$kept/launched || status=$?
    wait $recorders || status=$?
    wait $mpis
    cat $kept/mpis.log
    return $status
}

# Two launches at a time, and what else there is.
side_by_side() {
    export LAPSCOPE_TEST_LAUNCHES=2 RUST_TEST_THREADS=3
    without_launchers &
    of_libraries &
    launched_beside_others &
    wait
}

alone() {
    export LAPSCOPE_TEST_LAUNCHES=1
    # shellcheck disable=SC2086
    launched $measuring
}

# What lines of the output begin with these words, each once.
said() {
    cat $kept/*.log | tr '\r' '\n' | grep -ohE "$1.*" | sort -u
}

# Of programs that an MPI cannot have one line for each MPI and reason: "NOT TESTED under MPI, REASON: PROGRAM PROGRAM".
by_reason() {
    awk '
        match($0, /^NOT TESTED: [^ ]+ under [^:]+: /) {
            split(substr($0, 13), words, " ")
            mpi = substr($0, 13 + length(words[1]) + 7)
            reason = mpi
            sub(/:.*/, "", mpi)
            sub(/^[^:]*: /, "", reason)
            programs[mpi ", " reason] = programs[mpi ", " reason] " " words[1]
            next
        }
        { print }
        END { for (why in programs) print "NOT TESTED under " why ":" programs[why] }' | sort
}

summary() {
    echo
    echo "seconds  processor  passed  failed  suite"
    sort -rn $kept/summary | while read -r seconds processor p f _ name; do
        printf '%7d  %9.0f  %6d  %6d  %s\n' "$seconds" "$(awk -F+ '{ print $1 + $2 }' <<<"$processor")" "$p" "$f" "$name"
    done
    echo
    echo "the longest tests:"
    sed -n 's/^test \(.*\) \.\.\. .*<\([0-9.]*\)s>$/\2 s  \1/p' $kept/*.log | sort -rn | head -n 12
    echo
    said 'NOT TESTED' | by_reason
    said 'SKIPPED: '
    said 'ASKED AGAIN'
    said 'LAUNCHED AGAIN'
    said 'LEFT TO make check-all'
    said 'MORE THAN make check'
    echo "$((SECONDS / 60)) min $((SECONDS % 60)) s"
    # .ci/run prints this file once more, behind make's own last words
    {
        sed 's/^/failed: /' $kept/*.failed
        awk '{ p += $3; f += $4; s += $5 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' $kept/summary
    } | tee build/check-total
    tail -n 1 build/check-total | grep -q '^[1-9][0-9]* passed, 0 failed'
}

# Tests are run as by a user who has set everything that they could trip over.
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=$PWD/tests/hostile.sh"
export RUST_BACKTRACE=0

# What makes a second compilation quick makes the first one slow. `cargo test` by hand has it, beside what is built here.
export CARGO_INCREMENTAL=0

suite "build" count_one prepare
if ! grep -q ' 0 1 0 build$' $kept/summary; then
    side_by_side
    alone
fi
summary
