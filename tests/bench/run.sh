#!/usr/bin/env bash
# What lapscope costs, measured: `make bench`. Every figure is a ratio or difference taken within one run; absolute times
# are of this machine. Takes half an hour, of which `inject` is the greater part.
#
#   tests/bench/run.sh [rate] [records] [off] [instructions] [overhead] [paths] [threads] [fortran] [finalize] [report] [overlap] [readers] [inject] [auto] [ghost] [copies] [sample] [gpu] [followed] [python] [tune] [live] [many_jobs] [commands]      default: all
set -euo pipefail
cd "$(dirname "$0")/../.."

libraries=${LAPSCOPE_LIB_DIR:-$PWD/build/lib} # those of another commit, to compare with
preload=$libraries/liblapscope.so
lapscope=${LAPSCOPE_BIN:-$PWD/target/release/lapscope}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

mpis=()
for mpi in openmpi mpich; do
    if command -v "mpicc.$mpi" >/dev/null && [ -e "$libraries/liblapscope-$mpi.so" ]; then mpis+=("$mpi"); fi
done
if [ ${#mpis[@]} = 0 ]; then echo "no MPI with a recorder: run \`make build\` first" >&2; exit 1; fi

launch() { # launch MPI RANKS command...
    local mpi=$1 ranks=$2
    shift 2
    local more=()
    if [ "$mpi" = openmpi ] && [ "$ranks" -gt 2 ]; then more=(--oversubscribe); fi
    "mpirun.$mpi" "${more[@]}" -n "$ranks" "$@"
}

rate() {
    echo "== nanoseconds a message, one rank to another: bare (PMPI_*) and recorded (MPI_*) windows in turn within one process"
    local mpi bytes window
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/message_rate.$mpi" tests/bench/message_rate.c
        for window in 64 1000; do
            for bytes in 8 64 512 4096 16384 65536; do
                printf '  %-8s' "$mpi"
                LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$work/run \
                    launch "$mpi" 2 env LD_PRELOAD="$preload" "$work/message_rate.$mpi" "$bytes" "$window" 41
                rm -rf "$work/run"
            done
        done
    done
}

records() {
    echo "== the same with rows, sums and the record of a job (LAPSCOPE_RECORD) in turn: neither may cost more than rows"
    local mpi window turn record
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/message_rate.$mpi" tests/bench/message_rate.c
        for window in 64 1000; do
            for turn in 1 2 3; do
                for record in on sums job; do
                    mkdir -p "$work/run"
                    printf '  %-8s %-5s' "$mpi" "$record"
                    LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_RECORD=$record LAPSCOPE_DIR=$work/run \
                        launch "$mpi" 2 env LD_PRELOAD="$preload" "$work/message_rate.$mpi" 8 "$window" 101
                    rm -rf "$work/run"
                done
            done
        done
    done
}

off() {
    echo "== the same without records, with nothing to inject for (LAPSCOPE_RECORD=off LAPSCOPE_INJECT=auto)"
    local mpi
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/message_rate.$mpi" tests/bench/message_rate.c
        printf '  %-8s' "$mpi"
        LAPSCOPE_QUIET=on LAPSCOPE_RECORD=off LAPSCOPE_INJECT=auto \
            launch "$mpi" 2 env LD_PRELOAD="$preload" "$work/message_rate.$mpi" 8 64 401
    done
}

count() { # count PRELOAD PROGRAM WINDOW WINDOWS: what callgrind counts, one line
    mkdir -p "$work/run"
    LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$work/run LD_PRELOAD=$1 \
        valgrind --tool=callgrind --callgrind-out-file=/dev/null --cache-sim=yes "$2" 8 "$3" "$4" seen 2>&1 | sed -n 's/.*Collected : //p'
    rm -rf "$work/run"
}

instructions() {
    echo "== instructions, memory accesses and cache misses added per request: messages of 8 bytes to self, windows of that many requests"
    if ! command -v valgrind >/dev/null; then echo "  no valgrind"; return; fi
    local mpi window windows
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/message_rate.$mpi" tests/bench/message_rate.c
        for window in 64 1000; do
            windows=$((16000 / window))
            # twice as many windows less these many: what starting and ending costs is in both
            { count "" "$work/message_rate.$mpi" $window $windows
              count "" "$work/message_rate.$mpi" $window $((2 * windows))
              count "$preload" "$work/message_rate.$mpi" $window $windows
              count "$preload" "$work/message_rate.$mpi" $window $((2 * windows)); } |
                awk -v mpi="$mpi" -v window=$window -v requests=$((window * windows)) '
                    { for (i = 1; i <= 6; i++) v[NR, i] = $i }
                    function bare(i) { return (v[2, i] - v[1, i]) / requests }
                    function added(i) { return (v[4, i] - v[3, i]) / requests - bare(i) }
                    END { printf "  %-8s %4d in flight: %4.0f instructions added to %.0f, %.0f loads, %.0f stores, %.1f misses of the first cache\n",
                                 mpi, window, added(1), bare(1), added(2), added(3), added(5) + added(6) }'
        done
    done
}

overhead() {
    echo "== CPU time added per request: bare (PMPI_*) and recorded (MPI_*) batches of messages to self in turn within one process"
    local mpi paths flight
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -pthread -o "$work/overhead.$mpi" tests/bench/overhead.c
        for flight in 1 32 1000; do
            for paths in on off; do
                echo "$mpi, $flight in flight, call paths $paths"
                LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_CALLPATH=$paths LAPSCOPE_DIR=$work/run \
                    launch "$mpi" 1 env LD_PRELOAD="$preload" "$work/overhead.$mpi" 8 "$flight" 41
                rm -rf "$work/run"
            done
        done
    done
}

paths() {
    echo "== CPU time added to a call whose path, 20 deep, is new, and in the long run where all are: bare and recorded batches in turn"
    local mpi
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O1 -fno-omit-frame-pointer -w -o "$work/paths.$mpi" tests/bench/paths.c
        printf '  %-8s' "$mpi"
        LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$work/run launch "$mpi" 1 env LD_PRELOAD="$preload" "$work/paths.$mpi"
        rm -rf "$work/run"
    done
}

threads() {
    echo "== two threads under MPI_THREAD_MULTIPLE, each with messages to self, otherwise as above"
    local mpi flight
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -pthread -o "$work/overhead.$mpi" tests/bench/overhead.c
        for flight in 1 32 1000; do
            echo "$mpi, $flight in flight"
            LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$work/run \
                launch "$mpi" 1 env LD_PRELOAD="$preload" "$work/overhead.$mpi" 8 "$flight" 41 2
            rm -rf "$work/run"
        done
    done
}

quartiles() { # median and quartiles of the numbers on standard input
    sort -g | awk '{ v[NR] = $1 } END { printf "%8.1f ns   (quartiles %.1f .. %.1f)\n", v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)] }'
}

fortran() {
    echo "== Fortran (mpi_f08), one rank with messages to self: processes without and with lapscope in turn"
    local mpi flight turn bare with
    for mpi in "${mpis[@]}"; do
        if ! command -v "mpifort.$mpi" >/dev/null; then echo "  no Fortran for $mpi"; continue; fi
        "mpifort.$mpi" -O2 -w -o "$work/fortran.$mpi" -J "$work" tests/bench/overhead_fortran.f90
        for flight in 1 32 1000; do
            : >"$work/bare"; : >"$work/added"
            for turn in 1 2 3 4 5 6 7 8 9; do
                bare=$(launch "$mpi" 1 "$work/fortran.$mpi" "$flight" 11)
                with=$(LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$work/run \
                    launch "$mpi" 1 env LD_PRELOAD="$preload" "$work/fortran.$mpi" "$flight" 11)
                rm -rf "$work/run"
                echo "$bare" >>"$work/bare"
                awk -v b="$bare" -v w="$with" 'BEGIN { print w - b }' >>"$work/added"
            done
            echo "$mpi, $flight in flight"
            printf '  bare, per request             %s\n' "$(quartiles <"$work/bare")"
            printf '  added by lapscope, per request%s\n' "$(quartiles <"$work/added")"
        done
    done
}

finalize() {
    echo "== MPI_Finalize and bytes: a rank turning 4 million requests into SQLite, three times, bare in between"
    local mpi turn bare with bytes
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/flood.$mpi" tests/bench/flood.c
        for turn in 1 2 3; do
            bare=$(launch "$mpi" 1 "$work/flood.$mpi" 4000000)
            with=$(LAPSCOPE_QUIET=on LAPSCOPE_DIR=$work/run launch "$mpi" 1 env LD_PRELOAD="$preload" "$work/flood.$mpi" 4000000)
            bytes=$(stat -c %s "$work/run/rank-0.db")
            awk -v m="$mpi" -v b="$bare" -v w="$with" -v s="$bytes" 'BEGIN {
                printf "  %-8s MPI_Finalize %.3f s bare, %.3f s with: %.3f s a million requests (and their half million calls), %.2f million rows/s; %.1f bytes a request, %.1f a row\n",
                       m, b, w, (w - b) / 4, 6 / (w - b), s / 4e6, s / 6e6 }'
            rm -rf "$work/run"
        done
    done
}

measure() { # measure words of a lapscope command: time, CPU time, peak memory
    python3 - "$lapscope" "$@" <<'PY'
import resource, subprocess, sys, time
begin = time.monotonic()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
words = " ".join(word for word in sys.argv[2:] if "/" not in word)
print(f"  lapscope {words:22} {time.monotonic() - begin:6.2f} s, "
      f"{used.ru_utime + used.ru_stime:6.2f} s CPU, peak {used.ru_maxrss / 1024:.0f} MB, exit {status}")
PY
}

report() {
    echo "== the command line on ten million requests of four ranks"
    local mpi=${mpis[0]} turn
    "mpicc.$mpi" -O2 -w -o "$work/flood.$mpi" tests/bench/flood.c
    LAPSCOPE_QUIET=on LAPSCOPE_DIR=$work/run launch "$mpi" 4 env LD_PRELOAD="$preload" "$work/flood.$mpi" 2500000 >"$work/out"
    for turn in 1 2 3; do
        measure report "$work/run"
        measure sites "$work/run"
        measure report "$work/run" --format json
    done
}

overlap() {
    echo "== messages of 16 ranks matched, and what was hidden of them: 1, 3 and 10 million requests"
    local millions turn
    cargo build --quiet --release -p lapscope --example synthetic
    for millions in 1 3 10; do
        echo "$millions million"
        target/release/examples/synthetic "$work/synthetic" 16 $((millions * 62500))
        for turn in 1 2 3; do
            measure overlap "$work/synthetic"
            measure thresholds "$work/synthetic"
            measure whatif "$work/synthetic"
        done
        rm -rf "$work/synthetic"
    done
}

readers() {
    echo "== processor time of the commands that read; LAPSCOPE_BENCH_BASE=OTHER/target/release is compared with, in turn"
    cargo build --quiet --release -p lapscope --example synthetic
    python3 tests/bench/read.py ${LAPSCOPE_BENCH_BASE:+"$LAPSCOPE_BENCH_BASE"} target/release
}

inject() {
    local mpi mode bytes
    for mpi in "${mpis[@]}"; do "mpicc.$mpi" -O2 -w -o "$work/progress.$mpi" tests/bench/progress.c; done
    if [ -e build/mpi/mpich5/ready ]; then build/mpi/mpich5/bin/mpicc -O2 -w -o "$work/progress.mpich5" tests/bench/progress.c; fi
    python3 tests/bench/inject.py "$work" "$preload"
    echo "== CPU time added per request by injection with nothing to gain: messages of 8 bytes to self, as in overhead"
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -pthread -o "$work/overhead.$mpi" tests/bench/overhead.c
        for mode in off calls timer thread; do
            for bytes in 65536 0; do
                echo "$mpi, LAPSCOPE_INJECT=$mode, LAPSCOPE_INJECT_MIN_BYTES=$bytes"
                LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_INJECT=$mode LAPSCOPE_INJECT_MIN_BYTES=$bytes LAPSCOPE_DIR=$work/run \
                    launch "$mpi" 1 env LD_PRELOAD="$preload" "$work/overhead.$mpi" 8 1 41
                rm -rf "$work/run"
            done
        done
    done
}

# LAPSCOPE_INJECT=auto against fixed settings
auto() {
    local mpi
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/gain.$mpi" -I tests/apps tests/apps/gain.c
        "mpicc.$mpi" -std=gnu11 -O2 -w -o "$work/ghost_cells.$mpi" examples/ghost_cells/ghost_cells.c
    done
    # Debian's hypre is built against Open MPI; where it is not (libhypre-dev), auto.py says so
    mpicc.openmpi -O2 -w -I/usr/include/hypre -o "$work/amg.openmpi" tests/bench/amg.c -lHYPRE 2>/dev/null || true
    python3 tests/bench/auto.py "$work" "$preload" ${TURNS:+"$TURNS"}
}

ghost() {
    local mpi
    for mpi in "${mpis[@]}"; do "mpicc.$mpi" -std=gnu11 -O2 -w -o "$work/ghost_cells.$mpi" examples/ghost_cells/ghost_cells.c; done
    python3 tests/bench/ghost.py "$work" "$preload" "${1:-injected}"
}

copies() { ghost copied; }

python() {
    echo "== nanoseconds a call of mpi4py from ten functions of Python deep, and what recording and lines of Python add"
    local mpi
    for mpi in "${mpis[@]}"; do python3 tests/bench/python.py "$preload" "$mpi"; done
}

# what LAPSCOPE_SAMPLE costs
sample() {
    local mpi
    for mpi in "${mpis[@]}"; do "mpicc.$mpi" -O2 -w -o "$work/paced.$mpi" tests/bench/paced.c; done
    python3 tests/bench/sampled.py "$work" "$preload" ${TURNS:+"$TURNS"}
}

# what it costs to record when GPUs work, on a stand-in
gpu() {
    local mpi
    cc -D_GNU_SOURCE -O2 -shared -fPIC -o "$work/libcuda.so.1" tests/apps/gpu_clockwork.c -ldl -pthread
    for mpi in "${mpis[@]}"; do "mpicc.$mpi" -D_GNU_SOURCE -O2 -w -o "$work/gpu_work.$mpi" tests/apps/gpu_work.c -ldl -pthread; done
    python3 tests/bench/gpu.py "$work" "$preload" ${TURNS:+"$TURNS"}
}

# advice to test, followed to its end in three programs
followed() { python3 tests/bench/followed.py "$work/followed" "$lapscope" ${TURNS:+"$TURNS"}; }

# what lapscope tune finds for a Python program, beside tests by hand
tune() {
    tests/mpis.sh numpy
    local python=build/mpi/numpy/bin/python
    if [ ! -x "$python" ] || ! command -v mpirun.openmpi >/dev/null; then echo "  no NumPy, or no Open MPI"; return; fi
    python3 tests/bench/tuned.py "$work" "$lapscope" "$PWD/$python" ${TURNS:+"$TURNS"}
}

# spent FILE command...: its processor seconds, user and system, with those of all that it started. In a shell of its own, which
# has no other children whose seconds would count when they end meanwhile.
spent() (
    TIMEFORMAT='%U %S'
    { time "${@:2}" >/dev/null 2>&1 || true; } 2>"$1"
)

live() {
    echo "== processor time of lapscope live in percent of that of the program, two ranks that exchange 8 bytes for 5 s at full speed"
    local mpi interval how
    for mpi in "${mpis[@]}"; do
        "mpicc.$mpi" -O2 -w -o "$work/full_speed.$mpi" tests/apps/full_speed.c
        for how in "1 --format json" "0.1 --format json" "1 screen"; do
            read -r interval how <<<"$how"
            LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_DIR=$work/run \
                spent "$work/program" launch "$mpi" 2 env LD_PRELOAD="$preload" "$work/full_speed.$mpi" 5 &
            until [ -e "$work/run/rank-1.spool" ]; do sleep 0.01; done
            if [ "$how" = screen ]; then
                spent "$work/live" script -qec "stty columns 160 rows 50; timeout 5 $lapscope live $work/run" /dev/null
            else
                spent "$work/live" "$lapscope" live "$work/run" $how --interval "$interval"
            fi
            wait $!
            paste "$work/live" "$work/program" | awk -v what="$mpi, $how, a look each $interval s" '
                { printf "  %-44s %5.2f %%  (%.2f of %.2f s)\n", what, 100 * ($1 + $2) / ($3 + $4), $1 + $2, $3 + $4 }'
            rm -rf "$work/run"
        done
    done
}

# records of a hundred thousand jobs
many_jobs() {
    echo "== lapscope jobs: records imported and listed"
    cargo build --quiet --release -p lapscope-fixture --example jobs
    python3 tests/bench/jobs.py "$work/jobs" "$lapscope" target/release/examples/jobs
}

# a thousand commands of a shell, each a process without MPI
commands() {
    echo "== a process without MPI: bare, with a preload library that is empty, and with lapscope's, in turn"
    echo 'int nothing;' | cc -shared -fPIC -o "$work/empty.so" -x c -
    cc -O2 -o "$work/commands" tests/bench/commands.c
    "$work/commands" 1000 "$work/empty.so" "$preload"
}

for part in "${@:-rate records off instructions overhead paths threads fortran finalize report overlap readers inject auto ghost copies sample gpu followed python tune live many_jobs commands}"; do
    for one in $part; do "$one"; done
done
