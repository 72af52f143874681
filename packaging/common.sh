# What the scripts here share; sourced, from the root of the sources.
# shellcheck shell=sh

# MACHINE: for which processors. What another than this machine's is compiled against, and tried by, tests/aarch64/prepare.sh fetches.
machine=${MACHINE:-$(uname -m)}
if [ "$machine" = "$(uname -m)" ]; then
    cross=
    binutils=
    dist=$PWD/build/dist
else
    cross=$PWD/build/$machine
    binutils=$machine-linux-gnu-
    dist=$PWD/build/dist-$machine
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
glibc=2.17 # of CentOS 7: what manylinux2014 asks of a machine
target=$machine-linux-gnu.$glibc
name=lapscope-$version-linux-$machine

# The same bytes of the same commit: no time but the commit's, no path of this machine.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export SOURCE_DATE_EPOCH
export LC_ALL=C TZ=UTC0
umask 022

# compiled alone, zig would look for mistakes at run time, and end the application where it finds one
code_flags="-fno-sanitize=all -ffile-prefix-map=$PWD=/lapscope -ffile-prefix-map=$cargo_home=/cargo"

say() { printf 'dist: %s\n' "$*" >&2; }

# made STAMP WORD...: whether what the stamp stands for was made of these very words.
made() {
    stamp=$dist/$1.ready
    shift
    [ "$(cat "$stamp" 2>/dev/null)" = "$*" ]
}

mark_made() {
    stamp=$dist/$1.ready
    shift
    printf '%s\n' "$*" >"$stamp"
}

# Where this machine's apt fetches packages, "" without apt.
debian_mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1
}
