#!/bin/sh
# Builds what runs on every Linux of this machine's kind, or of MACHINE=aarch64, with glibc 2.17 or newer, under every
# MPI with one of the ABIs: `make dist`.
# build/dist/out gets the tree as a tarball and as a wheel, debug files as a tarball, what packaging/extras.sh makes of
# the tree, and SHA256SUMS of all. The same commit gives the same bytes.
#
# JOBS: processors
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
jobs=${JOBS:-$(nproc)}
tree=$dist/tree/$name
debug=$dist/tree/$name-debug
out=$dist/out
abis="openmpi mpich mpiabi"

# What was compiled by other means than these is compiled anew: neither cmake, cargo nor zig's cache knows all that its results
# depend on. What zig once compiled of glibc's start files is in every binary, whatever tools.sh says since of their paths. Another
# commit is such a means: a command was seen that had the schema of an older one in it.
forget_what_is_outdated() {
    means=$({ cat packaging/dist.sh packaging/common.sh packaging/tools.sh packaging/libraries.sh packaging/getrandom.c .cargo/config.toml
        "${cross:+$cross/bin/}rustc" -vV
        "${binutils}gcc" --version
        git rev-parse HEAD 2>/dev/null || true # a tarball of the sources has none
        echo "$dist" "$cargo_home"; } | sha256sum)
    made means "$means" && return
    rm -rf "$dist/zig" "$dist/deps" "$dist/interposer" "$dist/cargo"
    rm -f "$dist/sqlite.ready"
    mark_made means "$means"
}

# what one commit's sources become: recorders, modules of `lapscope calibrate`, the preload library
libraries() {
    say "recorders"
    # of gcc's library: what divides 128 bits. zig's own brings a memcpy, which would replace the C library's
    arithmetic=$("${binutils}gcc" -print-libgcc-file-name)
    mpicc=$PWD/build/mpi/mpich5/bin/mpicc_abi
    if [ "$cross" ]; then
        mpicc="$cross/bin/mpicc.openmpi;$cross/bin/mpicc.mpich;$mpicc"
        system="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$machine"
    fi
    # shellcheck disable=SC2086 # words, or none
    cmake -S interposer -B "$dist/interposer" ${system:-} -DCMAKE_C_COMPILER="$dist/bin/cc" -DCMAKE_ASM_COMPILER="$dist/bin/cc" \
        -DCMAKE_AR="$dist/bin/ar" -DCMAKE_RANLIB="$dist/bin/ranlib" \
        -DCMAKE_C_FLAGS="-isystem $dist/deps/include $code_flags" -DCMAKE_ASM_FLAGS="$code_flags" \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_EXE_LINKER_FLAGS=-pie \
        -DCMAKE_C_STANDARD_LIBRARIES="$arithmetic" -DLAPSCOPE_LIB_DIR="$dist/lib" \
        -DSQLITE3_LIBRARY="$dist/deps/lib/libsqlite3.a" \
        -DLAPSCOPE_MPICC="$mpicc" >"$dist/cmake.log"
    targets="lapscope lapscope-cuda lapscope-calibrate"
    for abi in $abis; do
        if ! grep -q "recorder for $abi " "$dist/cmake.log"; then
            say "no MPI of the ABI $abi: \`tests/mpis.sh compiler\` and Debian's libopenmpi-dev and libmpich-dev have them"
            exit 1
        fi
        targets="$targets lapscope-$abi lapscope-calibrate-$abi"
    done
    # shellcheck disable=SC2086 # a list
    cmake --build "$dist/interposer" -j "$jobs" --target $targets >"$dist/recorders.log" 2>&1 ||
        { grep -A5 'error' "$dist/recorders.log" >&2; exit 1; }
}

command_line() {
    say "command line"
    # shellcheck disable=SC2086 # flags
    "$dist/bin/cc" -O2 $code_flags -c packaging/getrandom.c -o "$dist/getrandom.o"
    if [ "$cross" ]; then export RUSTC="$cross/bin/rustc"; fi
    PATH=$dist/tools/bin:$PATH CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=none \
        CARGO_ZIGBUILD_ZIG_PATH="$dist/bin/zig" CARGO_ZIGBUILD_PYTHON_PATH=/bin/false \
        CFLAGS="-I$dist/deps/include $code_flags" \
        RUSTFLAGS="--remap-path-prefix=$PWD=/lapscope --remap-path-prefix=$cargo_home=/cargo" \
        cargo-zigbuild rustc --locked --release --package lapscope --bin lapscope --target $machine-unknown-linux-gnu.$glibc \
        --target-dir "$dist/cargo" --jobs "$jobs" \
        -- -C link-arg="$dist/getrandom.o" >"$dist/command.log" 2>&1 || { tail -n 40 "$dist/command.log" >&2; exit 1; }
}

# Binaries without what only debuggers read; that goes into a tree beside, where they find it by name.
strip_apart() {
    for file in "$tree/bin/lapscope" "$tree"/lib/lapscope/*; do
        symbols=$debug/${file#"$tree"/}.debug
        mkdir -p "$(dirname "$symbols")"
        "${binutils}objcopy" --only-keep-debug --compress-debug-sections "$file" "$symbols"
        chmod 644 "$symbols"
        "${binutils}strip" --strip-all "$file"
        (cd "$(dirname "$symbols")" && "${binutils}objcopy" --add-gnu-debuglink="$(basename "$symbols")" "$file")
    done
}

lay_out() {
    rm -rf "$dist/tree"
    # unset: nothing before the prefix
    DESTDIR='' PREFIX=$tree BUILD=$dist/interposer COMMAND=$dist/cargo/$machine-unknown-linux-gnu/release/lapscope \
        EMULATOR=${cross:+$cross/bin/emulate} \
        interposer/install.sh install >/dev/null
    rm "$tree/lib/lapscope/installed" # who unpacks a directory removes that
    strip_apart
    install -D -m 644 -t "$tree/share/doc/lapscope" LICENSE README.md CHANGELOG.md docs/licences.md docs/user-guide.md \
        docs/reading-a-report.md docs/options.md
    packaging/extras.sh tree "$tree"
}

pack() {
    rm -rf "$out"
    mkdir -p "$out"
    for directory in "$name" "$name-debug"; do
        tar -C "$dist/tree" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
            -cf - "$directory" | gzip -9n >"$out/$directory.tar.gz"
    done
    packaging/wheel.py "$tree" "$out" >/dev/null
    packaging/extras.sh out "$tree" "$out"
    (cd "$out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
}

export ZIG_GLOBAL_CACHE_DIR="$dist/zig"
mkdir -p "$dist"
if [ "$cross" ]; then "tests/$machine/prepare.sh"; fi
tests/mpis.sh compiler
packaging/tools.sh
forget_what_is_outdated
packaging/libraries.sh
libraries
command_line
lay_out
packaging/check.sh "$tree"
pack
# which commit this is, where it is one
rm -f "$dist/commit"
if [ -z "$(git status --porcelain 2>/dev/null)" ]; then git rev-parse HEAD >"$dist/commit" 2>/dev/null || true; fi
ls -l "$out" | sed 1d
cat "$out/SHA256SUMS"
