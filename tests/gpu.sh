#!/bin/sh
# `lapscope doctor --gpu` on a machine with an NVIDIA GPU, and whether a program prints the same recorded. PyPI's mpich wheel is
# the MPI; nothing else is needed, CUPTI apart, which a CUDA toolkit or PyPI's nvidia-cuda-cupti has.
#
#   tests/gpu.sh prepare   where it is built: puts all that is needed into build/gpu, less than 64 MiB to carry there
#   tests/gpu.sh           where the GPU is
#   tests/gpu.sh standin   the same on the stand-in tests/apps/gpu_clockwork.c, where there is none
#
# LAPSCOPE_BIN, LAPSCOPE_LIB_DIR: what `prepare` takes, by default target/release/lapscope and build/lib.
set -eu
cd "$(dirname "$0")/.."
there=$PWD/build/gpu

prepare() {
    rm -rf "$there"
    mkdir -p "$there/lib"
    cp "${LAPSCOPE_BIN:-target/release/lapscope}" "$there/lapscope"
    strip "$there/lapscope"
    for file in liblapscope.so liblapscope-mpich.so liblapscope-cuda.so lapscope-calibrate liblapscope-calibrate-mpich.so; do
        cp "${LAPSCOPE_LIB_DIR:-build/lib}/$file" "$there/lib"
    done
    python3 -m venv --without-pip "$there/mpich"
    python3 -m pip --disable-pip-version-check --python "$there/mpich/bin/python" install -q --no-compile mpich
    "$there/mpich/bin/mpicc" -D_GNU_SOURCE -O1 -g -w -o "$there/gpu_work" tests/apps/gpu_work.c -ldl -pthread
    cc -D_GNU_SOURCE -O1 -shared -fPIC -o "$there/libcuda.so.1" tests/apps/gpu_clockwork.c -ldl -pthread
    rm -rf "$there"/mpich/include "$there"/mpich/lib/libmpi_abi* # of another ABI: a third of it
    du -sh "$there"
}

# What rank 0 of a program prints, whoever looks on.
work() { GPU_WORK_ALONE=1 "$@" "$there/mpich/bin/mpirun" -n 2 "$there/gpu_work" 4 2 20000000 10000; }

case ${1:-} in
prepare)
    prepare
    exit
    ;;
standin)
    mkdir -p "$there/cuda/extras/CUPTI/lib64"
    ln -f "$there/libcuda.so.1" "$there/cuda/extras/CUPTI/lib64/libcupti.so.12"
    export LD_LIBRARY_PATH="$there" CUDA_HOME="$there/cuda"
    ;;
'')
    if [ ! -e /dev/nvidiactl ]; then
        echo "NOT TESTED: there is no NVIDIA GPU here (no /dev/nvidiactl)"
        exit
    fi
    ;;
*)
    echo "usage: tests/gpu.sh [prepare|standin]" >&2
    exit 2
    ;;
esac
if [ ! -x "$there/gpu_work" ]; then
    echo "build/gpu is not here: \`tests/gpu.sh prepare\` makes it" >&2
    exit 1
fi
export LAPSCOPE_LIBRARY="$there/lib"
rm -rf "$there/run"
bare=$(work env -u CUDA_INJECTION64_PATH)
recorded=$(work env LAPSCOPE_QUIET=on "$there/lapscope" run --dir "$there/run" --)
if [ "$bare" != "$recorded" ]; then
    echo "it printed $recorded, alone $bare"
    exit 1
fi
status=0
said=$("$there/lapscope" doctor --gpu -- "$there/mpich/bin/mpirun" -n 2) || status=$?
echo "$said"
case $said in *'waits beside them'*) exit $status ;; *) exit 1 ;; esac
