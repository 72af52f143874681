#!/bin/sh
# The modulefiles, loaded by Environment Modules and by Lmod of Debian from a tree that was moved.
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs mmdebstrap bwrap

cp -a "$tree" "$scratch/moved"
mkdir -p "$scratch/site/lapscope" "$scratch/copied/lapscope"

# what a user would type; the last part is what his shell does when he presses Tab
cat >"$scratch/session.sh" <<'EOF'
. "$1"
where() { env | grep -E '^(PATH|MANPATH|XDG_DATA_DIRS|_LAPSCOPE_MODULE)=' | sort; }
tree=/scratch/moved
before=$(where)
module use $tree/share/modulefiles
module load lapscope || exit 1
echo "command: $(command -v lapscope), $(lapscope --version)"
echo "library: $(lapscope run --dry-run -- true | grep LD_PRELOAD)"
echo "manual: $(man -w lapscope-run)"
echo "data: $XDG_DATA_DIRS"
. /usr/share/bash-completion/bash_completion
_completion_loader lapscope
COMP_WORDS=(lapscope rep) COMP_CWORD=1
$(complete -p lapscope | sed 's/.*-F \([^ ]*\).*/\1/') lapscope rep lapscope
echo "completion: ${COMPREPLY[*]}"
module unload lapscope
[ "$(where)" = "$before" ] && echo "unloaded: nothing is left" || { echo "left:"; where; }
module load lapscope-auto && echo "for all: $LD_PRELOAD $LAPSCOPE_RECORD $LAPSCOPE_INJECT $LAPSCOPE_QUIET"
module unload lapscope-auto && echo "for none: ${LD_PRELOAD-}${LAPSCOPE_RECORD-}${LAPSCOPE_INJECT-}${LAPSCOPE_QUIET-}."
export MANPATH=/other/man
module load lapscope && echo "with MANPATH: $MANPATH, $(man -w lapscope-run)"
module unload lapscope && echo "without: $MANPATH"
module unuse $tree/share/modulefiles
module use /scratch/site
module load lapscope && echo "by a link: $(command -v lapscope)"
module unload lapscope; module unuse /scratch/site
module use /scratch/copied
module load lapscope 2>&1 | tr '\n' ' '
EOF

session() { # session NAME INIT FILE
    for at in site copied; do rm -f "$scratch/$at"/lapscope/*; done
    ln -s "../../moved/share/modulefiles/lapscope/$3" "$scratch/site/lapscope/$3"
    cp "$scratch/moved/share/modulefiles/lapscope/$3" "$scratch/copied/lapscope/$3"
    said=$(inside "$1" --ro-bind "$scratch" /scratch -- bash /scratch/session.sh "$2" 2>&1) || failed "$1: $said"
    expect "$1" "$said" '^command: /scratch/moved/bin/lapscope, lapscope [0-9.]+$'
    expect "$1" "$said" '^library: LD_PRELOAD=/scratch/moved/lib/lapscope/liblapscope.so'
    expect "$1" "$said" '^manual: /scratch/moved/share/man/man1/lapscope-run.1$'
    expect "$1" "$said" '^data: /scratch/moved/share:/usr/local/share:/usr/share$'
    expect "$1" "$said" '^completion: (.* )?report( |$)'
    expect "$1" "$said" '^unloaded: nothing is left$'
    expect "$1" "$said" '^for all: /scratch/moved/lib/lapscope/liblapscope.so off auto on$'
    expect "$1" "$said" '^for none: \.$'
    expect "$1" "$said" '^with MANPATH: /other/man:/scratch/moved/share/man, /scratch/moved/share/man/man1/lapscope-run.1$'
    expect "$1" "$said" '^without: /other/man$'
    expect "$1" "$said" '^by a link: /scratch/moved/bin/lapscope$'
    expect "$1" "$said" '/bin/lapscope is missing: this file belongs'
    passed "$1, $4"
}

root environment-modules bookworm environment-modules man-db bash-completion
root lmod bookworm lmod man-db bash-completion
version_of() { dpkg-query --admindir="$roots/$1/var/lib/dpkg" -W -f '${Version}' "$1"; }
session environment-modules /usr/share/modules/init/bash "$version" "$(version_of environment-modules)"
session lmod /usr/share/lmod/lmod/init/bash "$version.lua" "$(version_of lmod)"
