#!/usr/bin/env bash
# A job of CI: builds a program, records it three times, holds these runs against a stored baseline, and prints Markdown.
#
#   BUILD=make LAUNCH='mpirun -n 4 ./app small.dat' BASELINE=ci/overlap.json examples/ci/check.sh
#
# Without that file the runs become the baseline. Exit codes are those of `lapscope check`: 0 holds, 1 falls short, 2 cannot be judged.
set -euo pipefail

baseline=${BASELINE:?names the file with the baseline}
read -ra launch <<<"${LAUNCH:?is the launch line, without quotes in it}"
work=${WORK:-lapscope-ci}

rm -rf "$work"
mkdir -p "$work"
# a comment needs words also where there is no answer
trap 'code=$?; [ "$code" = 0 ] || [ -s "$work/check.md" ] || echo "Nothing was checked: exit code $code."' EXIT

bash -c "${BUILD:-true}" >&2
for number in 1 2 3; do
    lapscope run --dir "$work/run-$number" --watchdog 300 --watchdog-kill -- "${launch[@]}" >&2
done

if [ ! -e "$baseline" ]; then
    lapscope check "$work"/run-* --write-baseline "$baseline"
    echo "$baseline is the baseline now: keep it in the repository."
    exit 0
fi

code=0
lapscope check "$work"/run-* --against "$baseline" --junit "$work/check.xml" --badge "$work/check.svg" \
    --format markdown >"$work/check.md" || code=$?
cat "$work/check.md"
exit "$code"
