#!/bin/sh
# The types that calls.def gives to C functions are those of an mpi.h, for every function that it declares, but for
# MPI_Pready_list, whose array was not const before MPI-4.1.
#
#   signatures.sh GENERATED MPICC
set -eu
here=$(cd "$(dirname "$0")" && pwd)
generated=$1
mpicc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '#include <mpi.h>\n' | "$mpicc" -E -x c - | grep -o 'MPI_[A-Za-z_0-9]* *(' | tr -d ' (' | sort -u >"$work/declared"
{
    printf '#include "base/mpi_api.h"\n'
    sed -n 's/^SIGNATURE(\(.*\))$/\1/p' "$generated/signatures.inc" | grep -v MPI_Pready_list | sort | comm -12 - "$work/declared" |
        sed 's/.*/C_&_fn *check_& = \&&;/'
} >"$work/check.c"
checked=$(grep -c '^C_MPI_' "$work/check.c")
"$mpicc" -fsyntax-only -std=gnu11 -Werror=incompatible-pointer-types -I"$generated" -I"$here/../recorder" "$work/check.c"
echo "$checked functions of $mpicc"
[ "$checked" -gt 150 ]
