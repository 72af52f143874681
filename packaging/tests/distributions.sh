#!/bin/bash
# Whether the wheel of `make dist` does its work on other distributions: in a root file system of each Debian named (default:
# bullseye, glibc 2.31; bookworm, 2.36; trixie, 2.41), a user without root and without a compiler installs it with pip and
# gets a report of the halo exchange under each MPI that this Debian has. Needs root, mmdebstrap and what `make dist` made.
#
#   packaging/tests/distributions.sh [SUITE...]
set -euo pipefail
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs bwrap setpriv mpicc.openmpi mpicc.mpich
[ "$(id -u)" = 0 ] || { skipped "making root file systems takes root"; exit 0; }
suites=("$@")
if [ ${#suites[@]} = 0 ]; then suites=(bullseye bookworm trixie); fi
wheel=$(echo "$out"/*.whl)

# One binary for each ABI, for glibc 2.17 as well: there is no compiler where it runs.
for mpi in openmpi mpich; do
    OMPI_CC=$dist/bin/cc MPICH_CC=$dist/bin/cc "mpicc.$mpi" -std=gnu11 -O2 -g -Wl,--allow-shlib-undefined \
        -o "$scratch/halo.$mpi" examples/halo/halo.c -lm
done

# What the user types, and what shows that it did what it should.
cat >"$scratch/user.sh" <<'END'
set -eu
cd "$HOME"
export OMP_NUM_THREADS=1
if command -v gcc cc >/dev/null; then echo "a compiler is here"; exit 1; fi
seconds() { date +%s.%N; }
begin=$(seconds)
python3 -m venv tools
tools/bin/pip install --quiet --disable-pip-version-check --no-index ./*.whl
PATH=$HOME/tools/bin:$PATH
for mpi in openmpi mpich; do
    echo "-- $(mpirun.$mpi --version 2>&1 | grep -m 1 -e OpenRTE -e 'Open MPI' -e ersion:)"
    mpirun.$mpi -n 2 ./halo.$mpi -x 100000 -i 20 -s 20 >bare.txt
    lapscope run --dir run.$mpi --report -- mpirun.$mpi -n 2 ./halo.$mpi -x 100000 -i 20 -s 20 >report.txt
    if [ $mpi = openmpi ]; then
        echo "from the venv to the first report: $(echo "$begin $(seconds)" | awk '{ printf "%.1f s", $2 - $1 }')"
    fi
    grep -q 'halo.c:[0-9]' report.txt || { echo "no source line in the report"; cat report.txt; exit 1; }
    # 2 ranks, 20 steps and 4 exchanges that halo times first, 2 neighbours, a send and a receive each
    lapscope sql run.$mpi "select 'requests', count(*) from request" --format csv >rows.txt
    grep -q '^requests,192$' rows.txt || { echo "not 192 requests:"; cat rows.txt; exit 1; }
done
lapscope doctor >doctor.txt || true
sed -n '/recorder/p' doctor.txt
END

# As a user of that system, with a network of his own: MPICH asks for the address of the host's name.
try() { # try SUITE
    home=$roots/$1/home/user
    rm -rf "$home"
    install -d -o 1234 -g 1234 "$home"
    echo "127.0.0.1 localhost user" >"$roots/$1/etc/hosts"
    install -m 755 "$scratch"/halo.* "$home"
    install -m 644 "$wheel" "$scratch/user.sh" "$home"
    inside "$1" --dev-bind /dev /dev --ro-bind /sys /sys --perms 1777 --tmpfs /tmp --unshare-net --unshare-uts \
        --hostname user --cap-add CAP_SETUID --cap-add CAP_SETGID -- \
        env HOME=/home/user PATH=/usr/bin:/bin LC_ALL=C.UTF-8 timeout 300 \
        setpriv --reuid 1234 --regid 1234 --clear-groups --no-new-privs sh /home/user/user.sh
    rm -rf "$home"
}

for suite in "${suites[@]}"; do
    (root "$suite" "$suite" openmpi-bin mpich python3-venv) # where it cannot be had, the others may
    [ -e "$roots/$suite.has" ] || continue
    echo "== Debian $suite, $(inside "$suite" -- ldd --version | sed -n '1s/.* //; 1s/^/glibc /p')"
    try "$suite" 2>&1 || failed "$suite"
    passed "$suite"
done
