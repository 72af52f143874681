#!/bin/bash
# The programs of tests/apps under every MPI of this machine with what `make dist` has made in place of what `make` builds:
# the application's output and codes with and without it, and the rows it must leave.
set -euo pipefail
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs cargo
tests/mpis.sh
for topic in apps inject gpu_time; do
    LAPSCOPE_LIB_DIR=$tree/lib/lapscope LAPSCOPE_BIN=$tree/bin/lapscope cargo test --quiet -p lapscope-tests --test launched -- $topic:: ||
        failed "$topic"
    passed "$topic"
done
