#!/bin/sh
# The page that `lapscope html` writes, in a real browser: Debian's chromium, driven by playwright-core of npm, which is
# installed into build/browser. What cannot be had is named and not tested.
#
#   tests/browser.sh environment   makes or renews it
#   tests/browser.sh               tests
#   tests/browser.sh FILE.html DIRECTORY   screenshots of a page: wide and narrow, light and dark
set -eu
cd "$(dirname "$0")/.."
directory=$PWD/build/browser
log=build/browser.log
version=1.65.1

environment() {
    if [ -e "$directory/node_modules/playwright-core/package.json" ] && [ "$(cat "$directory/ready" 2>/dev/null)" = $version ]; then
        return
    fi
    mkdir -p "$directory"
    rm -f "$directory/ready"
    : >"$log"
    npm --prefix "$directory" install --no-audit --no-fund --no-save "playwright-core@$version" >>"$log" 2>&1 </dev/null &&
        echo $version >"$directory/ready"
}

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
missing=
if [ -z "$browser" ]; then
    missing="there is no chromium"
elif ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    missing="there is no node and npm"
elif ! environment; then
    missing="playwright-core could not be installed; $log has the reason"
fi
if [ -n "$missing" ]; then
    echo "NOT TESTED: the page in a browser, as $missing"
    exit 0
fi
if [ "${1:-}" = environment ]; then exit 0; fi
export LAPSCOPE_TEST_BROWSER="$browser" LAPSCOPE_TEST_PLAYWRIGHT="$directory/node_modules/playwright-core/index.mjs"
if [ $# -gt 0 ]; then exec node tests/browser/shots.mjs "$@"; fi

pages=$directory/pages
rm -rf "$pages"
mkdir -p "$pages"
LAPSCOPE_TEST_PAGES="$pages" ${CARGO:-cargo} test --quiet -p lapscope --test command -- --ignored --exact html::pages_for_the_browser
${CARGO:-cargo} build --quiet -p lapscope --bin lapscope --example synthetic

# Many ranks on many nodes, a slow one among them: pages are as large as of 64, so that more take longer to make alone.
ranks=200
if [ -n "${LAPSCOPE_TEST_ALL:-}" ]; then ranks=10000; fi
export LAPSCOPE_CALIBRATION_DIR="$directory/none"
(
    cd "$pages"
    ../../../target/debug/examples/synthetic many $ranks 8 4 8 --files node --ranks-per-node 100 --slow-rank 77 --stencil 2
    ../../../target/debug/lapscope html many
    ../../../target/debug/lapscope report many --top 0 --format json >many.json

    # and two runs side by side
    mkdir pairs
    for slow in 0 300; do
        ../../../target/debug/examples/synthetic slow-$slow 32 400 --stencil 2 --slow-rank 7 --slow-percent $slow
    done
    compare() { # NAME RUN RUN
        ../../../target/debug/lapscope html "$2" "$3" -o "pairs/$1.html"
        ../../../target/debug/lapscope diff "$2" "$3" --top 0 --format json >"pairs/$1.json"
    }
    compare changed small hostile
    compare slower slow-0 slow-300
) 2>/dev/null
status=0
node tests/browser/run.mjs "$pages" || status=$?
node tests/browser/pairs.mjs "$pages/pairs" || status=$?
exit $status
