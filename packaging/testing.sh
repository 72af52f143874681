# What the tests of packages share; sourced from the root of the sources by packaging/tests/*.sh.
# shellcheck shell=sh
. packaging/common.sh
tree=$dist/tree/$name
out=$dist/out
roots=$dist/roots # root file systems of Debian, which may be deleted at any time
test_name=$(basename "$0" .sh)

passed() { printf 'PASSED %s: %s\n' "$test_name" "$*"; }
skipped() { printf 'SKIPPED %s: %s\n' "$test_name" "$*"; }
failed() { printf 'FAILED %s: %s\n' "$test_name" "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# needs PROGRAM...: ends the test by name where one is missing
needs() {
    for program in "$@"; do
        has "$program" || { skipped "no $program here"; exit 0; }
    done
}

# expect "what it is" TEXT PATTERN: the text has a line that the extended regular expression matches
expect() {
    printf '%s\n' "$2" | grep -qE -e "$3" || failed "$1: no $3 in
$2"
}

# absent "what it is" TEXT PATTERN: it has none
absent() {
    if printf '%s\n' "$2" | grep -qE -e "$3"; then failed "$1: $3 in
$2"; fi
}

[ -x "$tree/bin/lapscope" ] || { skipped "no $tree; \`make dist\` builds it"; exit 0; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/lapscope-$test_name.XXXXXX")
# what a test has to end besides removing its files
tidy() { :; }
trap 'tidy; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM

# root NAME SUITE PACKAGE...: a file system of Debian with these packages in $roots/NAME, made once
root() {
    what=$1
    shift
    if [ "$(cat "$roots/$what.has" 2>/dev/null)" != "$*" ]; then
        has mmdebstrap || { skipped "no mmdebstrap here"; exit 0; }
        suite=$1
        shift
        rm -rf "${roots:?}/$what" "$roots/$what.has"
        mkdir -p "$roots"
        included=${*:+--include=$(echo "$*" | tr ' ' ,)}
        # shellcheck disable=SC2086 # perhaps none
        mmdebstrap --quiet --variant=minbase $included "$suite" "$roots/$what" \
            >"$roots/$what.log" 2>&1 || { skipped "mmdebstrap: $(tail -n 1 "$roots/$what.log")"; exit 0; }
        echo "$suite${*:+ $*}" >"$roots/$what.has"
    fi
}

# inside NAME [OPTION...] -- COMMAND...: runs in that file system, with an environment of its own; options are bwrap's
inside() {
    what=$1
    shift
    bound="--bind $roots/$what /"
    options=
    while [ "$1" != -- ]; do options="$options $1"; shift; done
    shift
    # shellcheck disable=SC2086 # lists, of paths without blanks
    bwrap $bound --dev /dev --proc /proc --tmpfs /tmp $options --die-with-parent --unshare-pid --clearenv \
        --setenv PATH /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --setenv HOME /root --setenv TERM dumb \
        -- "$@"
}
