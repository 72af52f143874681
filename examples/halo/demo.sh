#!/usr/bin/env bash
# `make demo`: builds lapscope, then runs the halo exchange bare and under lapscope, with the report. Where network
# namespaces are permitted it runs over a slow link of its own (loopback held to 1600 Mbit/s), because there a transfer
# takes time while the processor is free; over shared memory every copy is work of a processor, and there is little to
# hide.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
# The demo is of the defaults.
for name in ${!LAPSCOPE_@}; do unset "$name"; done

lapscope=$PWD/target/release/lapscope
work=build/demo
rm -rf "$work"
mkdir -p "$work"

if command -v mpicc.openmpi >/dev/null; then
    compiler=mpicc.openmpi launcher=mpirun.openmpi
else
    compiler=mpicc launcher=mpirun
fi
echo "building, some minutes the first time (messages in build/demo-build.log)"
tests/build.sh build/demo-build.log "$compiler"
"$compiler" -std=gnu11 -O2 -g -o "$work/halo" examples/halo/halo.c -lm

# Root in a namespace is root to Open MPI.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

slow_link='ip link set lo up && tc qdisc add dev lo root tbf rate 1600mbit burst 256kb latency 20ms'
inside=
if "$launcher" --version 2>&1 | grep -q -e 'Open MPI' -e OpenRTE; then
    for unshare in "unshare -n" "unshare -rn"; do
        if $unshare sh -c "$slow_link" 2>/dev/null; then inside=$unshare; break; fi
    done
fi

launch() { # launch [command...] -- [program arguments]: the command before, the program behind a launch line of 2 ranks
    local before=() line=("$launcher" -n 2)
    while [ "$1" != -- ]; do before+=("$1"); shift; done
    shift
    if [ -n "$inside" ]; then
        line+=(--mca btl tcp,self --mca btl_tcp_if_include lo)
        # shellcheck disable=SC2016 # for the inner shell
        $inside sh -c "$slow_link"' && exec "$@"' sh "${before[@]}" "${line[@]}" "$@"
    else
        "${before[@]}" "${line[@]}" "$@"
    fi
}

if [ -n "$inside" ]; then
    echo "Two ranks over a link of 1600 Mbit/s: 16.8 MB an iteration both ways, 84 ms of transfer,"
    echo "against 100 ms of computation that could overlap it."
else
    echo "Network namespaces are not permitted here, or there is no Open MPI: two ranks over shared memory. Transfers are"
    echo "short there; \`lapscope doctor\` says what the slow link needs."
fi

echo
echo "== bare"
launch -- "$work/halo" | tee "$work/bare.txt"
steps=$(sed -n 's/.* \([0-9]*\) steps a cell.*/\1/p' "$work/bare.txt")

# What a transfer takes on this link; reports find it in this directory.
export LAPSCOPE_CALIBRATION_DIR=$PWD/$work/calibration
echo
echo "== what a transfer takes here: lapscope calibrate -- $launcher -n 2"
launch "$lapscope" calibrate --

echo
echo "== the same under lapscope: lapscope run --report -- $launcher -n 2 $work/halo -s $steps"
launch "$lapscope" run --dir "$work/run" --report -- "$work/halo" -s "$steps"

echo
echo "The command is $lapscope: to say \`lapscope\`, PATH=\$PATH:${lapscope%/*}"
echo 'Built for this demo alone. `make` adds recorders of other MPIs that are here, and a command that reads large'
echo 'runs several times faster.'
