#!/usr/bin/env bash
# Every suite, one after the other, also when one fails; the last line is the total: `make check`.
set -uo pipefail
cd "$(dirname "$0")/.."

rm -f build/check-total
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
broken=()

# suite NAME COUNTER command...: COUNTER prints "passed failed" from the output; a command that fails without a failed
# test (it did not compile, it crashed) counts as one.
suite() {
    local name=$1 counter=$2 status p f
    shift 2
    echo "== $name"
    "$@" 2>&1 </dev/null | tee "$log"
    status=$?
    read -r p f < <("$counter" "$status")
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$f" != 0 ]; then broken+=("$name"); fi
    passed=$((passed + p)) failed=$((failed + f))
    echo "-- $name: $p passed, $f failed"
}

count_one() { if [ "$1" = 0 ]; then echo 1 0; else echo 0 1; fi; }

count_cargo() {
    awk '/^test result:/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1) } }
         END { print p + 0, f + 0 }' "$log"
}

count_ctest() {
    awk '/tests passed, .* tests? failed out of/ { f += $4; p += $NF - $4 } END { print p + 0, f + 0 }' "$log"
}

sanitized() { # sanitized SANITIZERS
    cmake -S interposer/test -B "build/sanitize-${1%%,*}" -DLAPSCOPE_SANITIZE="$1" >/dev/null &&
        cmake --build "build/sanitize-${1%%,*}" -j 2 >/dev/null &&
        tests/hostile.sh ctest --test-dir "build/sanitize-${1%%,*}" --output-on-failure
}

# Tests are run as by a user who has set everything that they could trip over.
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=$PWD/tests/hostile.sh"

suite "rustfmt" count_one cargo fmt --all --check
suite "clippy" count_one cargo clippy --workspace --all-targets --quiet -- -D warnings
suite "units in C" count_ctest tests/hostile.sh ctest --test-dir build/interposer --output-on-failure
suite "units in C, AddressSanitizer and UndefinedBehaviorSanitizer" count_ctest sanitized address,undefined
suite "units in C, ThreadSanitizer" count_ctest sanitized thread
suite "generator" count_cargo cargo test -p lapscope-generate --no-fail-fast
if [ -x build/mpi/standard/bin/python ]; then
    suite "calls against the standard" count_one build/mpi/standard/bin/python tests/coverage.py --check
else
    echo "NOT TESTED: calls against the standard (no pympistandard)"
fi
suite "command line" count_cargo cargo test -p lapscope --no-fail-fast
suite "programs under real launchers" count_cargo cargo test -p lapscope-tests --no-fail-fast

echo
for name in "${broken[@]}"; do echo "failed: $name"; done
echo "$passed passed, $failed failed" | tee build/check-total
[ "$failed" = 0 ] && [ "$passed" != 0 ]
