#!/bin/sh
# The trampolines under an MPI that nobody knows: every kind of argument arrives, one warning is printed, and the library
# exports MPI symbols alone, and dlopen, dlmopen, dlsym, _exit, _Exit, pthread_sigmask, sigprocmask and lapscope_devices.
#
#   run.sh GENERATED COMPILER [EMULATOR...]
#
# GENERATED is what lapscope-generate has written; a cross compiler and, where it cannot run its programs, an emulator
set -eu
here=$(cd "$(dirname "$0")" && pwd)
generated=$1
compiler=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -fPIC -I$generated"
preload=$here/../../preload

$compiler $flags -fvisibility=hidden -shared -o "$work/liblapscope.so" "$preload/abi.c" "$preload/by_handle.c" "$preload/devices.c" \
    "$preload/elf_table.c" \
    "$preload/exit.c" "$preload/mask.c" "$preload/next_dlsym.c" "$preload/probe.c" "$preload/resolve.c" "$preload/trampoline.S" \
    "$preload/../recorder/base/held.c" "$preload/../recorder/base/log.c"
$compiler $flags -shared -o "$work/libmpi.so" "$here/unknown_mpi.c"
$compiler $flags -o "$work/application" "$here/application.c" -L"$work" -lmpi "-Wl,-rpath,$work"

others=$(nm -D --defined-only "$work/liblapscope.so" | awk '$3 !~ /^(MPI|mpi)_|^(dlm?open|dlsym|_exit|_Exit|pthread_sigmask|sigprocmask|lapscope_devices)$/ {print $3}')
if [ -n "$others" ]; then echo "exported besides MPI calls: $others" >&2; exit 1; fi
entries=$(nm -D --defined-only "$work/liblapscope.so" | grep -Evc ' (dlm?open|dlsym|_exit|_Exit|pthread_sigmask|sigprocmask|lapscope_devices)$')
symbols=$(grep -c '^SYMBOL' "$generated/functions.inc")
if [ "$entries" -ne "$symbols" ]; then echo "$entries entries for the $symbols symbols of functions.inc" >&2; exit 1; fi

for kind in integers floats memory variable mangled; do
    if [ $# -gt 0 ]; then
        "$@" -E "LD_PRELOAD=$work/liblapscope.so" "$work/application" "$kind" 2>"$work/said"
    else
        LD_PRELOAD=$work/liblapscope.so "$work/application" "$kind" 2>"$work/said"
    fi || { cat "$work/said" >&2; exit 1; }
    lines=$(grep -c 'lapscope: this MPI is not one lapscope knows' "$work/said" || true)
    if [ "$lines" -ne 1 ]; then echo "$kind: one warning expected, said:" >&2; cat "$work/said" >&2; exit 1; fi
done

# what a program first opens does not take for there what its MPI has not got
$compiler $flags -shared -o "$work/libuser.so" "$here/user.c" -L"$work" -Wl,--no-as-needed -lmpi "-Wl,-rpath,$work"
$compiler $flags -o "$work/opener" "$here/opener.c" -ldl
for way in dlopen dlmopen; do
    if [ $# -gt 0 ]; then
        "$@" -E "LD_PRELOAD=$work/liblapscope.so" "$work/opener" $way "$work/libuser.so"
    else
        LD_PRELOAD=$work/liblapscope.so "$work/opener" $way "$work/libuser.so"
    fi || { echo "$way: the library finds functions that its MPI has not got" >&2; exit 1; }
done

# MPIs that are not here, by what they say of themselves: the recorder of their ABI is looked for. An emulator passes the
# variable on.
recorder_for() { # recorder_for TEXT [EMULATOR...]
    export TEST_MPI_VERSION="$1"
    shift
    if [ $# -gt 0 ]; then
        "$@" -E "LD_PRELOAD=$work/liblapscope.so" "$work/application" integers
    else
        LD_PRELOAD=$work/liblapscope.so "$work/application" integers
    fi 2>&1 | sed -n 's/.*cannot load the recorder for this MPI.*liblapscope-\([a-z]*\)\.so.*/\1/p'
}
for text in "MPI VERSION    : CRAY MPICH version 8.1.21 (ANL base 3.4a2)" "=== ParaStation MPI 5.7.1-1 ===" \
    "MVAPICH2 Version      :	2.3.6" "MPICH Version:	4.0.2"; do
    abi=$(recorder_for "$text" "$@")
    if [ "$abi" != mpich ]; then echo "$text: the recorder for MPICH expected, got \"$abi\"" >&2; exit 1; fi
done
abi=$(recorder_for "HPE MPT 2.23  08/26/20 02:54:49-root" "$@")
if [ -n "$abi" ]; then echo "HPE MPT: no recorder expected, got $abi" >&2; exit 1; fi
