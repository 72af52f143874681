#!/bin/sh
# SQLite from source, as a static library that the recorders contain: build/dist/deps. It is the one that the command line has in it
# (crate libsqlite3-sys).
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
flags="-O2 -g1 -fPIC -fvisibility=hidden $code_flags"

sqlite() {
    source=$(cargo metadata --format-version 1 --locked | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(os.path.dirname(next(p["manifest_path"] for p in packages if p["name"] == "libsqlite3-sys")) + "/sqlite3")')
    made sqlite "$source" "$target" "$flags" && return
    say "SQLite ($source)"
    mkdir -p "$dist/deps/include" "$dist/deps/lib"
    "$dist/bin/cc" $flags -w -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -c "$source/sqlite3.c" -o "$dist/sqlite3.o"
    rm -f "$dist/deps/lib/libsqlite3.a"
    "$dist/bin/ar" rcsD "$dist/deps/lib/libsqlite3.a" "$dist/sqlite3.o"
    cp "$source/sqlite3.h" "$dist/deps/include/"
    mark_made sqlite "$source" "$target" "$flags"
}

sqlite
