#!/bin/sh
# build/aarch64/bin: compilers for aarch64, those of its MPIs, its launchers, and a rustc that knows it.
set -eu
cd "$(dirname "$0")/../.."
base=$PWD/build/aarch64
root=$base/arm64
libraries=$root/usr/lib/aarch64-linux-gnu
bin=$base/bin
mkdir -p "$bin"

# Only what changes is written: cmake and the tests build anew what is older than its compiler.
script() { # script NAME TEXT
    text="#!/bin/sh
$2"
    [ "$(cat "$bin/$1" 2>/dev/null)" = "$text" ] && return
    printf '%s\n' "$text" >"$bin/$1"
    chmod +x "$bin/$1"
}

compiler() { # compiler NAME PROGRAM FLAGS LIBRARIES
    script "$1" "[ \"\$*\" != -show ] || { echo '$2 $3'; exit; }
exec '$bin/$2' $3 \"\$@\" $4"
}

for program in gcc gfortran; do
    script $program "exec aarch64-linux-gnu-$program '--sysroot=$root' \"\$@\""
done
openmpi=$libraries/openmpi
compiler mpicc.openmpi gcc "-I$openmpi/include -I$openmpi/include/openmpi" "-L$openmpi/lib -lmpi"
compiler mpifort.openmpi gfortran "-I$openmpi/include -I$libraries/fortran/gfortran-mod-15/openmpi" \
    "-L$openmpi/lib -lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh -lmpi"
compiler mpicc.mpich gcc "-I$root/usr/include/aarch64-linux-gnu/mpich" -lmpich
compiler mpifort.mpich gfortran "-I$root/usr/include/aarch64-linux-gnu/mpich -I$libraries/fortran/gfortran-mod-15/mpich" \
    "-lmpichfort -lmpich"
for mpi in openmpi mpich; do
    script mpirun.$mpi "exec '$PWD/tests/aarch64/enter.sh' /usr/bin/mpirun.$mpi \"\$@\""
done

script emulate "exec '$base/qemu/usr/bin/qemu-aarch64' -L '$root' \"\$@\""

rust=$base/rust/usr
script rustc "exec '$rust/lib64/ld-linux-x86-64.so.2' --library-path '$rust/lib/x86_64-linux-gnu' '$rust/bin/rustc' --sysroot '$rust' \"\$@\""
