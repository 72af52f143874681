#!/bin/sh
# What is needed to build for aarch64 and to try it: build/aarch64 with Debian's MPIs, an emulator, a rustc that compiles for
# aarch64, and build/aarch64/bin. Takes a minute the first time, and 3 GB.
set -eu
cd "$(dirname "$0")/../.."
base=$PWD/build/aarch64
mkdir -p "$base"
tests/setup.sh aarch64
# a shell for programs that call system(3), Python to install a wheel
tests/aarch64/fetch.sh "$base/arm64" bookworm arm64 base-files bash coreutils dash libc6-dev libopenmpi-dev openmpi-bin \
    libmpich-dev mpich libsqlite3-dev python3-venv
tests/aarch64/fetch.sh "$base/qemu" trixie amd64 qemu-user
tests/aarch64/fetch.sh "$base/rust" trixie amd64,arm64 base-files rustc libstd-rust-dev:arm64
tests/aarch64/wrappers.sh
if ! tests/aarch64/enter.sh true; then
    echo "programs for aarch64 do not run here: that takes user namespaces and Linux 6.7 or newer" >&2
    exit 1
fi
