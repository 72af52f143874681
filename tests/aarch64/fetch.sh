#!/bin/sh
# fetch.sh ROOT SUITE ARCHITECTURES PACKAGE...: files of Debian packages, with those that they depend on, unpacked below ROOT.
#
# Nothing is installed: apt-get has settings and lists of its own here, and no program of a package is run. So it takes no
# root, and changes nothing on this machine. ARCHITECTURES are separated by commas, the first is that of packages that name none.
set -eu
. packaging/common.sh
root=$1
suite=$2
architectures=$3
shift 3
keys=/usr/share/keyrings/debian-archive-keyring.gpg
stamp=$root.ready
made="$suite $architectures $*"
[ "$(cat "$stamp" 2>/dev/null)" = "$made" ] && exit 0
[ -e "$keys" ] || { echo "$keys is missing: apt-get install debian-archive-keyring" >&2; exit 1; }

settings=$root.apt
rm -rf "$root" "$settings" "$stamp"
mkdir -p "$settings/lists/partial" "$settings/parts" "$settings/cache/archives/partial" "$root/usr"
: >"$settings/status"
echo "deb [signed-by=$keys] $(debian_mirror) $suite main" >"$settings/sources.list"
{
    cat <<END
Dir::Etc::sourcelist "$settings/sources.list";
Dir::Etc::sourceparts "$settings/parts";
Dir::Etc::preferences "$settings/none";
Dir::Etc::preferencesparts "$settings/parts";
Dir::State "$settings";
Dir::State::status "$settings/status";
Dir::Cache "$settings/cache";
APT::Architecture "${architectures%%,*}";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
Debug::NoLocking "true";
END
    echo "APT::Architectures { $(echo "$architectures" | sed 's/[^,]*/"&";/g; s/,/ /g') };"
} >"$settings/conf"
export APT_CONFIG="$settings/conf" DEBIAN_FRONTEND=noninteractive
apt-get -q -q update
apt-get -q -q -y install --download-only "$@" >/dev/null

# as base-files and usrmerge leave it
for directory in bin sbin lib lib64; do
    mkdir -p "$root/usr/$directory"
    ln -s "usr/$directory" "$root/$directory"
done
for package in "$settings"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -f - -C "$root"
done
rm -rf "$settings"
printf '%s\n' "$made" >"$stamp"
