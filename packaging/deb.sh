#!/bin/sh
# deb.sh TREE DIRECTORY: the portable tree as a package of Debian, made by Debian's own dpkg-buildpackage and debhelper
# of packaging/debian. Prints its path. The package works on every release with glibc 2.17 or newer.
set -eu
cd "$(dirname "$0")/.."
tree=${1:?TREE}
destination=${2:?DIRECTORY}
. packaging/common.sh
stage=$dist/deb/lapscope-$version

# The licence texts as paragraphs of debian/copyright, where every line has a blank in front and an empty one a dot
paragraph() { # paragraph NAME FILE
    echo "License: $1"
    sed -e 's/^$/./; s/^/ /' "$2"
}

copyright() {
    sed '/@LICENCES@/d' packaging/debian/copyright
    sed 1,4d LICENSE >"$stage.bsd"
    paragraph BSD-3-clause "$stage.bsd"
}

case $machine in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
esac
rm -rf "$dist/deb"
mkdir -p "$stage"
cp -a packaging/debian "$stage/debian"
cp -a "$tree" "$stage/tree"
copyright >"$stage/debian/copyright"
# what packaging/check.sh makes sure of; see packaging/debian/README.source
sed -i "s/@GLIBC@/$glibc/" "$stage/debian/shlibs.local"
# binaries alone: their revision says so, as nothing is built from a source package of Debian
cat >"$stage/debian/changelog" <<EOF
lapscope ($version-1) unstable; urgency=medium

  * The portable tree of lapscope $version; changelog.gz says what is new.

 -- lapscope developers <developers@lapscope.invalid>  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
EOF
# dpkg-deb lowers later times to the commit's, and leaves earlier ones, as of files of an older checkout
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
(cd "$stage" && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage --build=binary --host-arch="$architecture" \
    --no-sign --no-check-builddeps) >"$dist/deb.log" 2>&1 || { tail -n 20 "$dist/deb.log" >&2; exit 1; }
mkdir -p "$destination"
mv "$dist/deb/lapscope_$version-1_$architecture.deb" "$destination/"
rm -rf "$dist/deb"
echo "$destination/lapscope_$version-1_$architecture.deb"
