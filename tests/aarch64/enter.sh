#!/bin/bash
# enter.sh COMMAND...: in the root file system of `tests/aarch64.sh`, whose programs are for another processor.
#
# A user namespace has a table of its own of which program runs what kind of file (Linux 6.7 and newer), so that neither root nor
# a setting of this machine is needed, and it is gone with the last process in it. LAPSCOPE_TEST_PRELOAD becomes LD_PRELOAD there: the
# programs that lead there could not load it. LAPSCOPE_TEST_HERE=1: this machine's root stays.
set -eu
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export LAPSCOPE_TEST_TREE=$tree
# shellcheck disable=SC2016 # expanded inside
exec unshare --user --map-root-user --mount -- /bin/bash -c '
set -eu
tree=$LAPSCOPE_TEST_TREE
root=$tree/build/aarch64/arm64
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
here=${LAPSCOPE_TEST_HERE:-}
emulator=$tree/build/aarch64/qemu/usr/bin/qemu-aarch64:F
[ -z "$here" ] || emulator=$tree/build/aarch64/bin/emulate:
# ELF, 64 bit, little endian, executable or shared object, machine 183; F: the emulator is opened now, outside of the root
machine="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
printf %s ":aarch64:M::$machine:$mask:$emulator" >/proc/sys/fs/binfmt_misc/register
preload=${LAPSCOPE_TEST_PRELOAD:-}
unset LAPSCOPE_TEST_TREE LAPSCOPE_TEST_PRELOAD LAPSCOPE_TEST_HERE
[ -z "$here" ] || exec "$@"
for directory in /proc /dev /sys /tmp "${TMPDIR:-/tmp}" "$tree"; do
    mkdir -p "$root$directory"
    mount --rbind "$directory" "$root$directory"
done
exec chroot "$root" /usr/bin/env --chdir="$PWD" ${preload:+"LD_PRELOAD=$preload"} "$@"' enter "$@"
