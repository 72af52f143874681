#!/bin/sh
# hostile.sh command...: runs it as a user would who has set everything that tests could trip over, and has calibrated
# before where HOSTILE_HOME is the home directory that he did it in. `make check` runs all tests so.
# RUSTC_BOOTSTRAP lets test programs say how long each test took.
home=${HOSTILE_HOME:-/nowhere/at/all}
unset HOSTILE_HOME
# shellcheck disable=SC2086 # no blanks in it
exec env HOME="$home" XDG_DATA_HOME="$home/.local/share" XDG_CONFIG_HOME="$home" XDG_CACHE_HOME="$home" \
    LAPSCOPE_DIR=/nowhere/run LAPSCOPE_ENABLE=off LAPSCOPE_QUIET=on LAPSCOPE_CONVERT=off LAPSCOPE_MAX_MB=1 LAPSCOPE_INJECT=calls LAPSCOPE_REACH=on \
    LAPSCOPE_CALIBRATION_DIR="$home/.local/share/lapscope/calibration" LAPSCOPE_LIBRARY=/nowhere/liblapscope.so \
    LAPSCOPE_CALLPATH=off LAPSCOPE_NO_SUCH_OPTION=1 \
    OMPI_MCA_btl=no_such_component OMPI_MCA_pml=no_such_component PRTE_MCA_ras=no_such_component \
    PMIX_MCA_gds=no_such_component MPIR_CVAR_CH4_NETMOD=no_such_netmod MPICH_ASYNC_PROGRESS=1 I_MPI_FABRICS=no_such_fabric \
    I_MPI_DEBUG=5 HYDRA_DEBUG=1 FI_PROVIDER=no_such_provider UCX_TLS=no_such_transport \
    PMI_RANK=3 SLURM_JOB_NUM_NODES=4 SLURM_JOB_ID=17 SLURM_NODELIST=nowhere OMP_NUM_THREADS=7 \
    LD_BIND_NOW=1 RUSTC_BOOTSTRAP=1 COLUMNS=20 LINES=3 NO_COLOR=1 TERM=dumb LC_ALL=C TZ=Asia/Kathmandu \
    "$@"
