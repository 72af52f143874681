#!/bin/sh
# Makes sure that what a target needs is on this machine: `make` calls it first.
#
#   tests/setup.sh build|demo|check|aarch64
#
# Looks for each thing itself, not for its package: an MPI from a module or built by hand is as good. As root on a
# system with apt-get, installs what is missing; otherwise prints the command that would, and stops.
set -eu

what=${1:-build}
here=$(cd "$(dirname "$0")/.." && pwd)
cargo=${CARGO:-cargo}
missing=
wanted=
optional=

has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }
has_header() { ! has cc || printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1; }
has_library() { PATH=$PATH:/sbin ldconfig -p | grep -q "$1"; }
has_mpi() { has "mpicc.$1" && has "mpirun.$1"; }
has_any_mpi() { has_mpi openmpi || has_mpi mpich || { has mpicc && has mpirun; }; }
has_rust() { "$cargo" --version 2>/dev/null | grep -q -E '^cargo (1\.([89][0-9]|[1-9][0-9]{2})|[2-9])'; }
has_allocators() { for name in jemalloc tcmalloc_minimal mimalloc tbbmalloc_proxy; do has_library "lib$name.so" || return; done; }
has_venv() { python3 -c 'import venv, ensurepip' >/dev/null 2>&1; }

has_browser() { has chromium || has chromium-browser || has google-chrome; }

need() { # need "what it is" "Debian packages" test...
    name=$1
    packages=$2
    shift 2
    if ! "$@"; then
        missing="$missing $packages"
        wanted="$wanted, $name"
    fi
}

# For tests that say that they are skipped where it is not there.
want() { # want "Debian packages" test...
    packages=$1
    shift
    if ! "$@"; then optional="$optional $packages"; fi
}

look() {
    missing=
    wanted=
    optional=
    need "a C compiler" build-essential has cc
    need make build-essential has make
    need CMake cmake has cmake
    need SQLite libsqlite3-dev has_header sqlite3.h
    case $what in
        build) need "an MPI" "libopenmpi-dev openmpi-bin" has_any_mpi ;;
        demo)
            need "an MPI" "libopenmpi-dev openmpi-bin" has_any_mpi
            want iproute2 has tc
            ;;
        check)
            need "Open MPI" "libopenmpi-dev openmpi-bin" has_mpi openmpi
            need MPICH "libmpich-dev mpich" has_mpi mpich
            need gfortran gfortran has gfortran
            need "a C++ compiler" build-essential has g++
            need "a cross compiler for aarch64" "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" has aarch64-linux-gnu-gcc
            need "an emulator of aarch64" qemu-user has qemu-aarch64
            need PAPI libpapi-dev has_header papi.h
            need sqlite3 sqlite3 has sqlite3
            need OTF2 "libopen-trace-format2-10 otf2-tools" has otf2-print
            need tc iproute2 has tc
            need "Python environments" python3-venv has_venv
            need LAMMPS lammps has lmp
            need HPCC hpcc has hpcc
            need "Quantum ESPRESSO" quantum-espresso has pw.x
            need "a browser" chromium has_browser
            need "Node.js" "nodejs npm" has npm
            want "slurm-wlm munge" has slurmctld
            want libdebuginfod1 has_library libdebuginfod.so.1
            want "libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 libtbbmalloc2" has_allocators
            want gdb has gdb # what hangs in a launch that does not end
            need "the tests of MUMPS" mumps-test test -x /usr/lib/mumps/dsimpletest
            ;;
        aarch64)
            need "an MPI" "libopenmpi-dev openmpi-bin" has_any_mpi
            need "a cross compiler for aarch64" "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" has aarch64-linux-gnu-gcc
            need "a Fortran cross compiler" gfortran-aarch64-linux-gnu has aarch64-linux-gnu-gfortran
            need apt-get apt has apt-get
            need "keys of Debian's packages" debian-archive-keyring test -e /usr/share/keyrings/debian-archive-keyring.gpg
            need unshare util-linux has unshare
            ;;
        *)
            echo "usage: $0 build|demo|check|aarch64" >&2
            exit 2
            ;;
    esac
}

install_missing() {
    echo "installing$missing$optional"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q </dev/null >/dev/null
    # shellcheck disable=SC2086 # a list of packages
    [ -z "$missing" ] || apt-get install -q -y --no-install-recommends $missing </dev/null >/dev/null
    # shellcheck disable=SC2086
    [ -z "$optional" ] || apt-get install -q -y --no-install-recommends $optional </dev/null >/dev/null ||
        echo "not to be had:$optional"
}

# LD_PRELOAD splits at blanks and colons, make and CMake have others
case $here in
    *[:\;\$\#\*\\\"]*) refused=yes ;;
    *[[:space:]]*) [ "$what" = build ] || refused=yes ;; # that can be installed elsewhere
esac
if [ -n "${refused:-}" ]; then
    printf "%s: LD_PRELOAD, make or CMake cannot take a path with blanks or any of : ; \$ # * \\\\ \"; move the tree, and run this there\n" "$here" >&2
    exit 1
fi

# CMake builds where a tree was that has been copied or moved since, or not at all.
for cache in "$here"/build/*/CMakeCache.txt; do
    if [ -e "$cache" ] && ! grep -q -F "CMAKE_HOME_DIRECTORY:INTERNAL=$here/" "$cache"; then
        echo "built anew, as the tree was somewhere else: ${cache%/*}"
        rm -rf "${cache%/*}"
    fi
done

look
if [ -n "$missing$optional" ] && [ "$(id -u)" = 0 ] && has apt-get; then
    install_missing
    look
fi
if [ -n "$missing" ]; then
    echo "missing: ${wanted#, }" >&2
    echo "on Debian and Ubuntu: sudo apt-get install$missing" >&2
    echo "elsewhere: the packages of these names, or the modules of your cluster" >&2
fi
if ! has_rust; then
    echo "missing: Rust 1.80 or newer with cargo; where rustup is installed: rustup toolchain install stable" >&2
    missing=Rust
fi
[ -z "$missing" ]
