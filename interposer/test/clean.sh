#!/bin/sh
# clean.sh command...: runs a test without the variables of the user who runs it, but those that say where things are.
exec env -i PATH="$PATH" HOME=/nowhere ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} ${TMPDIR:+TMPDIR="$TMPDIR"} ${LAPSCOPE_TEST_ALL:+LAPSCOPE_TEST_ALL="$LAPSCOPE_TEST_ALL"} \
    "$@"
