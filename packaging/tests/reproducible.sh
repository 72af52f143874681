#!/bin/sh
# The same commit, built again in another directory with a path of another length, gives the same bytes: as long as
# `make dist` takes, and 4 GB of disk.
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs git
commit=$(git rev-parse HEAD)
[ "$(cat "$dist/commit" 2>/dev/null)" = "$commit" ] ||
    { skipped "build/dist is not of the commit that is checked out: \`make dist\`, with all changes committed"; exit 0; }
again=$PWD/build/built-again-in-a-place-of-another-name
rm -rf "$again"
tidy() { rm -rf "$again"; }
git clone --quiet . "$again"
mkdir -p "$again/build/dist"
cp -a "$dist/sources" "$again/build/dist/"
ln -s "$PWD/build/mpi" "$again/build/mpi"
(cd "$again" && git checkout --quiet "$commit" && packaging/dist.sh) >"$scratch/log" 2>&1 ||
    failed "the second build: $(tail -n 20 "$scratch/log")"
diff "$out/SHA256SUMS" "$again/build/dist/out/SHA256SUMS" >"$scratch/different" || {
    rm -rf "$dist/built-again"
    mv "$again/build/dist/tree" "$dist/built-again"
    failed "not the same: $(cat "$scratch/different")
$(diff -rq "$dist/tree" "$dist/built-again" | head -n 5)
diffoscope says where, for two of these files"
}
passed "$(wc -l <"$out/SHA256SUMS") files have the same bytes, built in $PWD and $again"
