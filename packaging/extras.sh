#!/bin/sh
# What packages have beside the installed tree; called by packaging/dist.sh.
#
#   extras.sh tree TREE        into the tree: modulefiles, and the list of what it is made of
#   extras.sh out TREE OUT     beside its tarball and wheel: that list, a source distribution for pip to refuse with, recipes
#                              for Spack and EasyBuild, and where Debian's tools are a package for Debian
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
export MACHINE="$machine"
list=share/doc/lapscope/lapscope.cdx.json

into_the_tree() { # into_the_tree TREE
    for module in lapscope lapscope-auto; do
        install -D -m 644 packaging/modulefiles/$module.tcl "$1/share/modulefiles/$module/$version"
        install -m 644 packaging/modulefiles/$module.lua "$1/share/modulefiles/$module/$version.lua"
    done
    packaging/sbom.py "$1" "$1/$list"
}

recipe() { # recipe TEMPLATE TARBALL FILE
    sum=$(sha256sum "$2")
    sed "s/@VERSION@/$version/g; s/@MACHINE@/$machine/g; s/@SHA256@/${sum%% *}/g" "$1" >"$3"
}

beside_the_tarball() { # beside_the_tarball TREE OUT
    cp "$1/$list" "$2/$name.cdx.json"
    packaging/sdist.py "$2" "$2"/lapscope-"$version"-py3-*.whl >/dev/null
    recipe packaging/spack/package.py "$2/$name.tar.gz" "$2/lapscope-$version-spack-$machine.py"
    recipe packaging/easybuild/lapscope.eb "$2/$name.tar.gz" "$2/lapscope-$version.eb"
    if [ "$cross" ]; then
        say "no package for Debian: made on machines of the kind that it is for"
    elif command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null; then
        packaging/deb.sh "$1" "$2" >/dev/null
    else
        say "no package for Debian: dpkg-dev and debhelper make it"
    fi
}

case ${1:-} in
tree) into_the_tree "${2:?TREE}" ;;
out) beside_the_tarball "${2:?TREE}" "${3:?OUT}" ;;
*)
    echo "usage: $0 tree TREE | out TREE OUT" >&2
    exit 2
    ;;
esac
