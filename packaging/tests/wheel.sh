#!/bin/sh
# The wheel as a user without root installs it, by pip and by uv; and what he is told where it does not fit.
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs python3 setpriv
user=65534 # nobody's number
cp "$out"/lapscope-"$version"-py3-*.whl "$out/lapscope-$version.tar.gz" "$scratch/"
mkdir "$scratch/home"
chmod 755 "$scratch"
chown -R $user:$user "$scratch/home"

# as that user: with a home of his own, and nothing of ours
as_user() {
    (cd "$scratch/home" && env -i PATH=/usr/bin:/bin HOME="$scratch/home" TERM=dumb PIP_NO_INDEX=1 \
        PIP_FIND_LINKS="$scratch" UV_PYTHON=/usr/bin/python3 \
        setpriv --reuid=$user --regid=$user --clear-groups --no-new-privs "$@" 2>&1)
}
# without the index the wheel needs nothing else; as_user fails, so do we
check_prefix() { # check_prefix NAME PREFIX PYTHON
    said=$(as_user sh -c 'PATH=$1/bin:$PATH
        [ "$(id -u)" != 0 ] && echo "not root"
        echo "command: $(command -v lapscope)" "$(lapscope --version)"
        lapscope run --dry-run -- true
        ! command -v man >/dev/null || echo "manual: $(man -w lapscope-run)"
        "$2" -c "import lapscope; print(\"package finds\", lapscope.Command().path)"' - "$2" "$3")
    expect "$1" "$said" '^not root$'
    expect "$1" "$said" "^command: $2/bin/lapscope lapscope $version\$"
    expect "$1" "$said" "^LD_PRELOAD=.*/lib/lapscope/liblapscope.so"
    if has man; then expect "$1" "$said" "^manual: $2/share/man/man1/lapscope-run.1\$"; fi
    expect "$1" "$said" "^package finds .*/bin/lapscope\$"
}

as_user /usr/bin/python3 -m venv "$scratch/home/venv" >/dev/null || { skipped "no venv here"; exit 0; }
as_user "$scratch/home/venv/bin/pip" -q install lapscope
check_prefix "pip in an environment" "$scratch/home/venv" "$scratch/home/venv/bin/python"
passed "pip install in an environment, as another user than root"
as_user "$scratch/home/venv/bin/pip" -q uninstall -y lapscope
left=$(find "$scratch/home/venv" -name '*lapscope*')
[ -z "$left" ] || failed "pip uninstall has left $left"
passed "pip uninstall leaves nothing"

# Debian's own Python wants it said that its user's directory is meant
as_user /usr/bin/python3 -m pip --version >/dev/null && user_install=1 || user_install=
if [ "$user_install" ]; then
    as_user env PIP_BREAK_SYSTEM_PACKAGES=1 /usr/bin/python3 -m pip -q install --user --no-warn-script-location lapscope
    check_prefix "pip install --user" "$scratch/home/.local" /usr/bin/python3
    passed "pip install --user"
    as_user env PIP_BREAK_SYSTEM_PACKAGES=1 /usr/bin/python3 -m pip -q uninstall -y lapscope
else
    skipped "pip install --user: /usr/bin/python3 has no pip"
fi

if python3 -m venv "$scratch/uv" && "$scratch/uv/bin/pip" -q install uv >/dev/null 2>&1; then
    as_user "$scratch/uv/bin/uv" tool install --no-index --find-links "$scratch" lapscope >"$scratch/uv.log" || failed "uv: $(cat "$scratch/uv.log")"
    said=$(as_user sh -c 'PATH=$HOME/.local/bin:$PATH; lapscope --version; lapscope run --dry-run -- true')
    expect uv "$said" "^lapscope $version\$"
    expect uv "$said" "^LD_PRELOAD=$scratch/home/.local/share/uv/tools/lapscope/lib/lapscope/liblapscope.so"
    passed "uv tool install"
    # uv takes the word for the platform
    said=$(as_user sh -c '"$1" venv -q musl && "$1" pip install -p musl --no-index --find-links "$2" --python-platform x86_64-unknown-linux-musl lapscope' \
        - "$scratch/uv/bin/uv" "$scratch") && failed "uv installs for musl"
    expect "uv for musl" "$said" 'there is no wheel that fits here'
    passed "uv for musl is refused with a reason"
else
    skipped "uv: PyPI has none to install here"
fi

# PEP 600's way to tell pip that this is no glibc; and the sentence that musl gets
site=$(as_user "$scratch/home/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo 'def manylinux_compatible(*_): return False' >"$site/_manylinux.py"
said=$(as_user "$scratch/home/venv/bin/pip" install lapscope) && failed "pip installs where no wheel fits"
expect "pip where no wheel fits" "$said" 'there is no wheel that fits here'
rm "$site/_manylinux.py"
tar -xzf "$scratch/lapscope-$version.tar.gz" -C "$scratch"
said=$(cd "$scratch/lapscope-$version" && python3 - 2>&1 <<'EOF'
import no_wheel
no_wheel.c_library = lambda: "musl"
no_wheel.build_wheel()
EOF
) && failed "no_wheel ends well"
expect "on musl" "$said" 'On musl .Alpine. MPI programs cannot be recorded'
passed "pip where no wheel fits is refused with a reason"
