#!/bin/sh
# The package of Debian: what lintian says of it, and that it can be installed in a clean system, used, and removed
# without a trace.
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
package=$(echo "$out"/lapscope_"$version"-1_*.deb)
[ -f "$package" ] || { skipped "no package in $out; \`make dist\` makes it where dpkg-buildpackage and debhelper are"; exit 0; }

if has lintian; then
    said=$(lintian --allow-root --fail-on error,warning "$package" 2>&1) || failed "lintian: $said"
    said=$(lintian --allow-root --fail-on none --show-overrides "$package" 2>&1)
    expect lintian "$said" '^O: lapscope: initial-upload-closes-no-bugs'
    passed "lintian has nothing to say but for the overrides, which are explained"
else
    skipped "lintian is not here"
fi

said=$(dpkg-deb -f "$package" Depends)
[ "$said" = "libc6 (>= $glibc)" ] || failed "it depends on $said"
mkdir "$scratch/unpacked"
dpkg-deb -x "$package" "$scratch/unpacked"
for file in "$tree/bin/lapscope" "$tree"/lib/lapscope/*; do
    cmp "$file" "$scratch/unpacked/usr/${file#"$tree"/}" || failed "$file is another in the package"
done
passed "depends on libc6 $glibc alone, has the binaries of the tarball"

needs mmdebstrap bwrap
# what installing and removing any package writes
listed() { find "$scratch/root" -mindepth 1 \( -path '*/var/log/*' -o -path '*/var/cache/*' -o -path '*/var/lib/dpkg/*-old' \
    -o -path '*/var/lib/dpkg/triggers/*' \) -prune -o -print | sort; }

for suite in bookworm bullseye; do
    root "clean-$suite" "$suite"
    cp -a "$roots/clean-$suite" "$scratch/root"
    listed >"$scratch/before"
    cp "$package" "$scratch/root/tmp/"
    said=$(roots=$scratch inside root --bind "$scratch/root/tmp" /tmp -- sh -c '
        set -e
        dpkg -i /tmp/*.deb
        lapscope --version
        lapscope run --dry-run -- true
        lapscope run -- /bin/true
        dpkg --verify lapscope && echo verified
        test -f /usr/share/man/man1/lapscope-run.1.gz -a -f /usr/share/zsh/vendor-completions/_lapscope && echo manual
        dpkg --purge lapscope' 2>&1) || failed "in $suite: $said"
    expect "in $suite" "$said" "^lapscope $version\$"
    expect "in $suite" "$said" '^LD_PRELOAD=/usr/lib/lapscope/liblapscope.so'
    expect "in $suite" "$said" '^verified$'
    expect "in $suite" "$said" '^manual$'
    absent "in $suite" "$said" 'cannot be preloaded'
    rm "$scratch"/root/tmp/*.deb
    listed | diff "$scratch/before" - >"$scratch/left" || failed "left in $suite: $(cat "$scratch/left")"
    rm -rf "$scratch/root"
    passed "installed, used and purged in a clean $suite, nothing is left"
done
