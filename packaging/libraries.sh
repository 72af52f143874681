#!/bin/sh
# libunwind and SQLite from source, as static libraries that the recorders contain: build/dist/deps.
#
# SQLite is the one that the command line has in it (crate libsqlite3-sys). libunwind is Debian's source package,
# fetched by apt-get with settings of its own, which change nothing on this machine; where there is no apt-get, put
# the archive of that name into build/dist/sources.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
unwind=1.6.2
archive=libunwind_$unwind.orig.tar.gz
checksum=4a6aec666991fb45d0889c44aede8ad6eb108071c3554fcdff671f9c94794976
sources=$dist/sources
flags="-O2 -g1 -fPIC -fvisibility=hidden $code_flags"

fetch_from_debian() {
    settings=$sources/apt
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mkdir -p "$settings/lists/partial" "$settings/cache/archives/partial"
    echo "deb-src [signed-by=$keys] $(debian_mirror) bookworm main" >"$settings/sources.list"
    apt() {
        apt-get -q -o Dir::Etc::sourcelist="$settings/sources.list" -o Dir::Etc::sourceparts=- \
            -o Dir::State::lists="$settings/lists" -o Dir::Cache="$settings/cache" -o APT::Sandbox::User= "$@" >/dev/null
    }
    (cd "$sources" && apt update && apt source --download-only libunwind=$unwind-3)
    rm -rf "$settings"
}

is_the_archive() { echo "$checksum  $sources/$archive" | sha256sum --check --status 2>/dev/null; }

libunwind() {
    made libunwind "$unwind" "$target" "$flags" && return
    mkdir -p "$sources"
    is_the_archive || { say "fetching the source of libunwind $unwind" && fetch_from_debian; } || true
    if ! is_the_archive; then
        say "$sources/$archive is missing or not the one of sha256 $checksum: put it there"
        exit 1
    fi
    say "libunwind $unwind"
    rm -rf "$dist/libunwind"
    mkdir -p "$dist/libunwind"
    tar -xzf "$sources/$archive" -C "$dist/libunwind" --strip-components=1
    # unwinding alone: nothing that throws exceptions, reads other processes or compressed symbols
    (
        cd "$dist/libunwind"
        ./configure --host=$machine-linux-gnu --prefix="$dist/deps" --disable-shared --enable-static --with-pic \
            --disable-minidebuginfo --disable-zlibdebuginfo --disable-cxx-exceptions --disable-ptrace \
            --disable-coredump --disable-setjmp --disable-tests --disable-documentation \
            CC="$dist/bin/cc" CXX=false AR="$dist/bin/ar" RANLIB="$dist/bin/ranlib" CFLAGS="$flags -w"
        make -j "${JOBS:-$(nproc)}"
        make install
    ) >"$dist/libunwind.log" 2>&1 || { tail -n 30 "$dist/libunwind.log" >&2; exit 1; }
    mark_made libunwind "$unwind" "$target" "$flags"
}

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

libunwind
sqlite
