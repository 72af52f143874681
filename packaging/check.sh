#!/bin/sh
# check.sh TREE: whether an installed tree runs where `make dist` promises: no symbol of a C library newer than 2.17, no
# library but the C library's own, nothing shown to the application that is not meant to be. Names what is wrong.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
tree=${1:?TREE}
wrong=0

complain() { say "$*"; wrong=1; }

# The C library's own libraries, which are everywhere
allowed='^(libc|libdl|libm|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so\.[0-9]+$|^libgcc_s\.so\.1$'

check_versions() { # check_versions FILE
    newest=$("${binutils}objdump" -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    newest=${newest#GLIBC_}
    if [ "$(printf '%s\n%s\n' "$newest" "$glibc" | sort -V | tail -n 1)" != "$glibc" ]; then
        complain "$1 needs glibc $newest: $("${binutils}objdump" -T "$1" | grep "GLIBC_$newest" | awk '{ print $NF }' | tr '\n' ' ')"
    fi
}

check_needed() {
    needed=$("${binutils}objdump" -p "$1" | awk '$1 == "NEEDED" { print $2 }' | grep -vE "$allowed" || true)
    if [ -n "$needed" ]; then complain "$1 needs $needed"; fi
    if "${binutils}objdump" -p "$1" | grep -qE 'R(UN)?PATH'; then complain "$1 looks for libraries in a place of its own"; fi
}

defined() { "${binutils}objdump" -T "$1" | awk '/^[0-9a-f]/ && !/\*UND\*/ { print $NF }'; }

check_shown() {
    case ${1##*/} in
    liblapscope-calibrate-*) shown='^lapscope_calibrate$' ;;
    liblapscope-cuda.so) shown='^(InitializeInjection|lapscope_find_cupti)$' ;;
    liblapscope-*) shown='^lapscope_attach$' ;;
    liblapscope.so) shown='^(p?mpi_|lapscope_devices$|_?exit$|_Exit$|dlm?open$|dlsym$|pthread_sigmask$|sigprocmask$)' ;;
    *) return 0 ;;
    esac
    more=$(defined "$1" | grep -viE "$shown" | head -n 5 | tr '\n' ' ' || true)
    if [ -n "$more" ]; then complain "$1 shows the application $more"; fi
}

for file in "$tree/bin/lapscope" "$tree"/lib/lapscope/*lapscope*; do
    check_versions "$file"
    check_needed "$file"
    check_shown "$file"
done
exit $wrong
