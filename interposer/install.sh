#!/bin/sh
# install.sh install|uninstall, by make. Installing keeps a list of what it put there, files and the directories that it
# had to make; uninstalling removes those and nothing else.
#   PREFIX   where it is used from; DESTDIR: put in front of that, to make a package
#   BUILD    of cmake; COMMAND: the program `lapscope`, which also writes its manual and completions
#   EMULATOR what runs it where it is for another kind of machine
set -eu
: "${PREFIX:?}"
root=${DESTDIR:-}$PREFIX
list=lib/lapscope/installed
# from the outside in
directories=". bin lib lib/lapscope share share/man share/man/man1 share/bash-completion share/bash-completion/completions
    share/zsh share/zsh/site-functions share/fish share/fish/vendor_completions.d"

put() {
    build=${BUILD:-build/interposer}
    before=$(cat "$root/$list" 2>/dev/null || true)
    made=
    for directory in $directories; do
        [ -d "$root/$directory" ] || made="$made$directory/
"
    done
    said=$(DESTDIR="${DESTDIR:-}" cmake --install "$build" --prefix "$PREFIX")
    printf '%s\n' "$said"
    install -D -m 755 "${COMMAND:-target/release/lapscope}" "$root/bin/lapscope"
    # shellcheck disable=SC2086 # a program, or none
    written=$(${EMULATOR:-} "${COMMAND:-target/release/lapscope}" manual "$root/share")
    {
        printf '%s\n' "$before" "$made" bin/lapscope "$list"
        printf '%s\n' "$written" | sed 's|^|share/|'
        # cmake names whole paths; all are in one directory
        printf '%s\n' "$said" | sed -n 's/^-- \(Installing\|Up-to-date\): .*\///p' | sed 's|^|lib/lapscope/|'
    } | sed '/^$/d' | sort -u >"$root/$list.new"
    mv "$root/$list.new" "$root/$list"
}

take_away() {
    if [ ! -f "$root/$list" ]; then
        echo "lapscope: $root/$list is missing: nothing that \`make install\` put there is known; name its PREFIX (and DESTDIR)" >&2
        exit 1
    fi
    entries=$(cat "$root/$list")
    printf '%s\n' "$entries" | while IFS= read -r entry; do
        case $entry in
        *..*) ;; # never one of ours
        bin/lapscope | lib/lapscope/?* | share/man/man1/lapscope*.1 | share/bash-completion/completions/lapscope | \
            share/zsh/site-functions/_lapscope | share/fish/vendor_completions.d/lapscope.fish)
            case $entry in
            */) ;;
            *) rm -f "$root/$entry" && echo "removed $root/$entry" ;;
            esac
            ;;
        esac
    done
    # from the inside out; where somebody else has files, the directory stays
    for directory in $(printf '%s\n' $directories | tac); do
        if printf '%s\n' "$entries" | grep -qxF "$directory/"; then
            [ "$directory" = . ] && path=$root || path=$root/$directory
            rmdir "$path" 2>/dev/null || true
        fi
    done
}

case ${1:-} in
install) put ;;
uninstall) take_away ;;
*)
    echo "usage: PREFIX=... install.sh install|uninstall" >&2
    exit 2
    ;;
esac
