#!/bin/sh
# A compiler for old C libraries, zig, and the program that cargo calls it by: into build/dist/tools, from PyPI.
# Compiler wrappers for cmake and configure: build/dist/bin/{cc,ar,ranlib,zig}.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
packages="ziglang==0.13.0 cargo-zigbuild==0.24.0"

mkdir -p "$dist/bin"
# shellcheck disable=SC2086 # a list of packages
if ! made tools $packages; then
    say "installing $packages"
    rm -rf "$dist/tools"
    python3 -m venv "$dist/tools"
    "$dist/tools/bin/python" -m pip install --quiet --disable-pip-version-check $packages </dev/null
    mark_made tools $packages
fi
zig=$("$dist/tools/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
# zig compiles glibc's start files and writes its own place and the working directory into their debug information, which
# no option maps: it gets names for both that are the same everywhere.
# Only what changes is written: cmake builds anew when its compiler is newer.
wrapper() { # wrapper NAME ARGUMENTS
    text="#!/bin/sh
exec 9<'${zig%/*}/lib'
exec env PWD=/proc/self/cwd ZIG_LIB_DIR=/proc/self/fd/9 '$zig' $2\"\$@\""
    [ "$(cat "$dist/bin/$1" 2>/dev/null)" = "$text" ] && return
    printf '%s\n' "$text" >"$dist/bin/$1"
    chmod +x "$dist/bin/$1"
}
wrapper zig ""
wrapper cc "cc -target $target "
wrapper ar "ar "
wrapper ranlib "ranlib "
