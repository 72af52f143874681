#!/bin/sh
# lapscope and containers: the host's lapscope around a container, the host's files within one, an image that has it, and
# ranks that are each in namespaces of their own. The image is made of Debian's packages: no registry is asked.
#
# LAPSCOPE_BIN: another command than that of the tree
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
command=${LAPSCOPE_BIN:-$tree/bin/lapscope}
export LAPSCOPE_LIBRARY="$tree/lib/lapscope"
[ "$(id -u)" = 0 ] || { skipped "not root"; exit 0; }
needs mmdebstrap bwrap
root container bookworm openmpi-bin libopenmpi-dev gcc libc6-dev musl-tools

cat >"$scratch/app.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, size;
    static char data[1 << 16], got[1 << 16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 20; i++) {
        MPI_Request both[2];
        MPI_Irecv(got, sizeof got, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(data, sizeof data, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        printf("ranks: %d\n", size);
    const char *setting = getenv("OMPI_MCA_btl_vader_eager_limit");
    FILE *seen = setting ? fopen("seen", "w") : NULL;
    if (seen) {
        fprintf(seen, "%s\n", setting);
        fclose(seen);
    }
    MPI_Finalize();
    return 0;
}
EOF
launch="mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none -n 2"
inside container --bind "$scratch" "$scratch" -- mpicc -g -o "$scratch/app" "$scratch/app.c"

# recorded RUN TEXT: the program worked, and all of both ranks is there
recorded() {
    expect "$1" "$2" '^ranks: 2$'
    expect "$1" "$2" ': 2 ranks, 80 requests, .*, 0 lost$'
    said=$("$command" report "$scratch/$1" 2>&1) || failed "$1: $said"
    expect "report of $1" "$said" '^2 ranks on .* Open MPI'
    expect "report of $1" "$said" 'app\.c:1[0-9]'
}

# tuned NAME COMMAND...: `lapscope tune`, as COMMAND, tries a setting in whole runs of the program, which sees it
tuned() {
    what=$1
    shift
    rm -f seen
    said=$("$@" 2>&1) || failed "$what: $said"
    expect "$what" "$said" 'OMPI_MCA_btl_vader_eager_limit=16384'
    expect "$what: what the program saw" "$(cat seen 2>&1)" '^16384$'
}
setting="--no-injection --budget 1 --setting OMPI_MCA_btl_vader_eager_limit=16384"

# --- engines ---
# What machines without systemd or with the older kind of cgroups need besides.
engine() {
    files=$(ulimit -n)
    verb=$1
    shift
    extra=
    if [ "$verb" = run ]; then extra="--cgroups=disabled --network=host --ulimit=nofile=$files:$files --ulimit=nproc=4096:4096"; fi
    # shellcheck disable=SC2086 # options
    timeout 300 podman --root "$scratch/store" --runroot "$scratch/runroot" --cgroup-manager=cgroupfs $verb $extra "$@"
}

podman_forms() {
    for driver in overlay vfs; do
        export STORAGE_DRIVER=$driver
        said=$(tar -C "$roots/container" -c . | engine import - localhost/mpi:1 2>&1 &&
            engine run --rm localhost/mpi:1 cat /etc/debian_version 2>&1) && break
        rm -rf "$scratch/store" "$scratch/runroot"
        [ "$driver" != vfs ] || { skipped "podman cannot start a container here: $said"; return 0; }
    done
    cd "$scratch"
    mount_here="-v $scratch:$scratch -w $scratch"

    # shellcheck disable=SC2086 # options
    said=$(engine run --rm $mount_here -v "$tree:$tree:ro" localhost/mpi:1 \
        "$tree/bin/lapscope" run --dir within -- $launch ./app 2>&1) || failed "within: $said"
    recorded within "$said"
    passed "podman: the host's tree within a container"

    cat >podman <<EOF
#!/bin/sh
verb=\$1
shift
exec /usr/bin/podman --root $scratch/store --runroot $scratch/runroot --cgroup-manager=cgroupfs \$verb \
    --cgroups=disabled --network=host --ulimit=nofile=$(ulimit -n):$(ulimit -n) --ulimit=nproc=4096:4096 "\$@"
EOF
    chmod +x podman
    # shellcheck disable=SC2086 # options
    said=$(timeout 300 "$command" run --dir around -- ./podman run --rm $mount_here localhost/mpi:1 $launch ./app 2>&1) ||
        failed "around: $said"
    recorded around "$said"
    # shellcheck disable=SC2086 # options
    said=$(timeout 300 "$command" run --dir nothing -- ./podman run --rm localhost/mpi:1 true 2>&1) || failed "nothing: $said"
    expect nothing "$said" 'nothing was recorded: the container has'
    [ ! -e nothing ] || failed "an empty run directory is left"
    # shellcheck disable=SC2086 # options
    tuned "tune around" timeout 300 "$command" tune $setting -- ./podman run --rm $mount_here localhost/mpi:1 $launch ./app
    passed "podman: the host's lapscope around a container, which knows nothing of it; settings are tried in it"

    cp "$out/$name.tar.gz" .
    said=$(engine build --isolation=chroot --build-arg BASE=localhost/mpi:1 --build-arg VERSION="$version" \
        --build-arg MACHINE="$machine" -f "$OLDPWD/packaging/container/Containerfile" -t localhost/mpi-lapscope:1 . 2>&1) ||
        failed "Containerfile: $said"
    # shellcheck disable=SC2086 # options
    said=$(engine run --rm $mount_here localhost/mpi-lapscope:1 lapscope run --dir image -- $launch ./app 2>&1) ||
        failed "image: $said"
    recorded image "$said"
    passed "podman: an image made by packaging/container/Containerfile"
    cd "$OLDPWD"
}

apptainer_forms() {
    has apptainer || { skipped "apptainer is not here, and Debian bookworm has none"; return 0; }
    (
        cd "$scratch"
        cp "$out/$name.tar.gz" .
        timeout 600 apptainer build --sandbox --build-arg base="$roots/container" --build-arg version="$version" \
            --build-arg machine="$machine" image "$OLDPWD/packaging/container/lapscope.def" >apptainer.log 2>&1 ||
            failed "apptainer build: $(tail -n 5 apptainer.log)"
        # shellcheck disable=SC2086 # options
        said=$(timeout 300 apptainer exec --bind "$scratch" image lapscope run --dir sandbox -- $launch ./app 2>&1) ||
            failed "apptainer exec: $said"
        recorded sandbox "$said"
        # shellcheck disable=SC2086 # options
        said=$(timeout 300 "$command" run --dir around-apptainer -- apptainer exec --bind "$scratch" "$roots/container" \
            $launch ./app 2>&1) || failed "around apptainer: $said"
        recorded around-apptainer "$said"
    )
    passed "apptainer: an image made by packaging/container/lapscope.def; the host's lapscope around another"
}

# --- without an engine ---
namespaces() {
    cd "$scratch"
    # as an engine that starts each rank in a container of its own: other process numbers, another host's name
    rm -rf apart
    # shellcheck disable=SC2086 # options
    said=$(inside container --bind "$scratch" "$scratch" --ro-bind "$tree" /lapscope --chdir "$scratch" -- \
        /lapscope/bin/lapscope run --dir plain -- $launch ./app 2>&1) || failed "plain: $said"
    recorded plain "$said"
    # shellcheck disable=SC2086 # options
    tuned "tune within" inside container --bind "$scratch" "$scratch" --ro-bind "$tree" /lapscope --chdir "$scratch" -- \
        /lapscope/bin/lapscope tune $setting -- $launch ./app
    cd "$OLDPWD"
    passed "bubblewrap: one file system for all ranks"
    if ! has mpirun || ! has mpicc; then
        skipped "ranks in namespaces of their own: no Open MPI on this machine itself"
        return 0
    fi
    mpicc.openmpi -g -o "$scratch/app-here" "$scratch/app.c"
    cat >"$scratch/rank" <<'EOF'
#!/bin/sh
exec bwrap --dev-bind / / --proc /proc --unshare-pid --unshare-uts --hostname "box$OMPI_COMM_WORLD_RANK" "$@"
EOF
    chmod +x "$scratch/rank"
    # shellcheck disable=SC2086 # options
    said=$(timeout 120 "$command" run --dir "$scratch/apart" -- mpirun.openmpi ${launch#mpirun} --mca btl tcp,self \
        "$scratch/rank" "$scratch/app-here" 2>&1) || failed "apart: $said"
    recorded apart "$said"
    expect apart "$("$command" report "$scratch/apart")" '^2 ranks on 2 nodes|box0.*box1'
    passed "ranks in pid and host name namespaces of their own are told apart"
}

# --- musl ---
musl() {
    printf '%s\n' '#include <dlfcn.h>' '#include <stdio.h>' '#include <unistd.h>' \
        'int main(void) { int (*say)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "puts"); say("it runs");' \
        'fflush(stdout); _exit(7); }' >"$scratch/musl.c"
    inside container --bind "$scratch" "$scratch" -- musl-gcc -o "$scratch/musl" "$scratch/musl.c"
    code=0
    said=$(inside container --ro-bind "$scratch" /data --ro-bind "$tree" /lapscope \
        --setenv LD_PRELOAD /lapscope/lib/lapscope/liblapscope.so -- /data/musl 2>&1) || code=$?
    [ "$code" = 7 ] || failed "a musl program ends with $code: $said"
    expect musl "$said" '^it runs$'
    absent musl "$said" 'relocating|not found'
    passed "a program of musl that meets the preload library runs as it would"
}

tidy() {
    umount -l "$scratch/store/overlay" 2>/dev/null || true
}
if [ "${1:-}" = podman ]; then
    podman_forms
    exit 0
fi
namespaces
musl
if ! has podman; then
    skipped "podman is not here"
elif [ -d /sys/fs/cgroup/unified ]; then
    # crun refuses mixed cgroups: a mount namespace of our own has none but the new kind
    unshare -m sh -c 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && "$0" podman' \
        "$PWD/packaging/tests/containers.sh"
else
    podman_forms
fi
apptainer_forms
