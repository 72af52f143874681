#!/bin/sh
# On a machine with an NVIDIA GPU: kernels of known length beside messages, against what is recorded of them. PyPI's mpich wheel is
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
rounds=10 ns=20000000 late_us=10000

prepare() {
    rm -rf "$there"
    mkdir -p "$there/lib"
    cp "${LAPSCOPE_BIN:-target/release/lapscope}" "$there/lapscope"
    strip "$there/lapscope"
    for library in liblapscope.so liblapscope-mpich.so liblapscope-cuda.so; do
        cp "${LAPSCOPE_LIB_DIR:-build/lib}/$library" "$there/lib"
    done
    python3 -m venv --without-pip "$there/mpich"
    python3 -m pip --disable-pip-version-check --python "$there/mpich/bin/python" install -q --no-compile mpich
    "$there/mpich/bin/mpicc" -D_GNU_SOURCE -O1 -g -w -o "$there/gpu_work" tests/apps/gpu_work.c -ldl -pthread
    cc -D_GNU_SOURCE -O1 -shared -fPIC -o "$there/libcuda.so.1" tests/apps/gpu_clockwork.c -ldl -pthread
    rm -rf "$there"/mpich/include "$there"/mpich/lib/libmpi_abi* # of another ABI: a third of it
    du -sh "$there"
}

# work KERNELS [before the program...]: prints what rank 0 does
work() {
    kernels=$1
    shift
    GPU_WORK_ALONE=1 "$@" "$there/mpich/bin/mpirun" -n 2 "$there/gpu_work" $rounds "$kernels" $ns $late_us told
}

# number KEY FILE: the first of that key in JSON
number() { grep -o "\"$1\": *[0-9]*" "$2" | head -n 1 | grep -o '[0-9]*$' || echo 0; }

# within WHAT FOUND LEAST MOST
within() {
    echo "  $1: $(($2 / 1000)) us, known to be $(($3 / 1000)) to $(($4 / 1000)) us"
    if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then wrong=1; fi
}

check() { # check KERNELS
    run=$there/run-$1
    rm -rf "$run"
    bare=$(work "$1" env -u CUDA_INJECTION64_PATH 2>/dev/null)
    recorded=$(work "$1" env LAPSCOPE_LIBRARY="$there/lib" LAPSCOPE_QUIET=on "$there/lapscope" run --dir "$run" -- 2>"$run.told")
    if [ "$bare" != "$recorded" ]; then echo "  it printed $recorded, alone $bare"; wrong=1; fi
    "$there/lapscope" report --format json "$run" >"$run.json"
    # how long waits were beside kernels the program has measured itself
    known=$((rounds * ns)) waited=$(sed -n 's/ ns of waits beside kernels$//p' "$run.told")
    echo "$1 of $ns ns at once, $rounds times:"
    # the two streams' run at once; a launch takes some us, and so does the GPU's own clock
    within "kernels" "$(number computing_ns "$run.json")" "$((known * 99 / 100))" "$((known * 105 / 100))"
    within "in MPI beside them" "$(number overlapped_with_gpu_ns "$run.json")" "$((waited * 95 / 100))" "$((waited * 105 / 100))"
}

case ${1:-} in
prepare)
    prepare
    exit
    ;;
standin)
    mkdir -p "$there/cuda/extras/CUPTI/lib64"
    ln -f "$there/libcuda.so.1" "$there/cuda/extras/CUPTI/lib64/libcupti.so.12"
    export GPU_DRIVER="$there/libcuda.so.1" CUDA_HOME="$there/cuda"
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
wrong=0
LAPSCOPE_LIBRARY="$there/lib" "$there/lapscope" doctor | grep 'GPU time' || true
check 1
check 2
if [ $wrong = 0 ]; then echo "as known"; else echo "NOT as known"; fi
exit $wrong
