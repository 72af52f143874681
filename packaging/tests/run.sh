#!/bin/sh
# `make dist-check`: tries what `make dist` has made. Each file beside this one is a topic; its lines PASSED, FAILED and SKIPPED
# are counted, and said again at the end unless they passed.
set -u
cd "$(dirname "$0")/../.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for topic in packaging/tests/*.sh; do
    case $topic in */run.sh) continue ;; esac
    { "$topic" </dev/null 2>&1 || echo "FAILED $topic: its code is $?"; } | tee -a "$log"
done
echo
grep -E '^(FAILED|SKIPPED) ' "$log"
passed=$(grep -c '^PASSED ' "$log")
failed=$(grep -c '^FAILED ' "$log")
skipped=$(grep -c '^SKIPPED ' "$log")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
