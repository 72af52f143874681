#!/bin/sh
# The recipes for EasyBuild, which installs by it, and for Spack, which is not among the packages of PyPI or Debian: that
# recipe is run with stand-ins for the functions that it takes from Spack.
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs python3 setpriv
user=65534 # EasyBuild does not work as root

easybuild_recipe() {
    if ! has modulecmd && ! [ -e /usr/lib/x86_64-linux-gnu/modulecmd.tcl ]; then
        skipped "EasyBuild: no Environment Modules here"
        return 0
    fi
    /usr/bin/python3 -m venv "$scratch/eb" && "$scratch/eb/bin/pip" -q install easybuild pycodestyle >/dev/null 2>&1 ||
        { skipped "EasyBuild: PyPI has none to install here"; return 0; }
    mkdir "$scratch/home" "$scratch/sources"
    cp "$out/$name.tar.gz" "$out/lapscope-$version.eb" "$scratch/sources/"
    chmod 755 "$scratch"
    chown -R $user:$user "$scratch/home"
    # Debian has it where PATH does not lead to
    mkdir "$scratch/bin"
    ln -s /usr/lib/x86_64-linux-gnu/modulecmd.tcl "$scratch/bin/modulecmd.tcl"
    eb() {
        (cd "$scratch/home" && env -i HOME="$scratch/home" USER=nobody LANG=C.UTF-8 \
            PATH="$scratch/eb/bin:$scratch/bin:/usr/local/bin:/usr/bin:/bin" MODULES_CMD=/usr/lib/x86_64-linux-gnu/modulecmd.tcl \
            TERM=dumb BASH_ENV=/usr/share/modules/init/bash setpriv --reuid=$user --regid=$user --clear-groups bash -c '
                . /usr/share/modules/init/bash; "$@"' - eb --modules-tool=EnvironmentModules --module-syntax=Tcl \
                --prefix="$scratch/home/eb" --sourcepath="$scratch/sources" "$@" 2>&1)
    }
    said=$(eb --check-style "$scratch/sources/lapscope-$version.eb") || failed "eb --check-style: $said"
    said=$(eb --robot --dry-run "$scratch/sources/lapscope-$version.eb") ||
        failed "eb --dry-run: $said"
    expect "eb --dry-run" "$said" "module: lapscope/$version"
    said=$(eb --allow-modules-tool-mismatch "$scratch/sources/lapscope-$version.eb") || failed "eb: $said"
    expect eb "$said" 'COMPLETED: Installation ended successfully'
    installed=$scratch/home/eb/software/lapscope/$version
    cmp "$tree/bin/lapscope" "$installed/bin/lapscope" || failed "EasyBuild has installed another file"
    said=$(env -i PATH=/usr/bin:/bin HOME=/tmp bash -c '. /usr/share/modules/init/bash; module use "$1"
        module load lapscope && command -v lapscope && lapscope --version' - "$scratch/home/eb/modules/all" 2>&1)
    expect "its module" "$said" "^$installed/bin/lapscope\$"
    expect "its module" "$said" "^lapscope $version\$"
    passed "EasyBuild: style, dry run, installed by it, loaded by the module that it writes"
}

spack_recipe() {
    mkdir "$scratch/stand-in" "$scratch/prefix"
    recipe=$(echo "$out/lapscope-$version"-spack-*.py)
    cat >"$scratch/stand-in/run.py" <<'EOF'
import os, pathlib, platform, runpy, shutil, subprocess, sys, types

seen = {"version": [], "conflicts": [], "license": [], "depends_on": []}
package, spack = types.ModuleType("spack.package"), types.ModuleType("spack")

def directive(name):
    def note(*words, **named):
        seen[name].append((words, named))
    return note

for name in seen:
    setattr(package, name, directive(name))
package.Package = object
package.join_path = os.path.join
package.install_tree = lambda source, target: shutil.copytree(source, target, symlinks=True)
package.run_after = package.on_package_attributes = lambda *_, **__: lambda function: function
package.Executable = lambda path: lambda *words: subprocess.run([path, *words], check=True)
spack.package = package
sys.modules.update({"spack": spack, "spack.package": package})

recipe, archive, prefix = sys.argv[1:]
os.chdir(pathlib.Path(archive).parent)
made = runpy.run_path(recipe)["Lapscope"]()
(words, named), = seen["version"]
import hashlib
assert named["url"] == "file://" + archive, named
assert named["sha256"] == hashlib.sha256(open(archive, "rb").read()).hexdigest(), named
assert not seen["depends_on"]
unpacked = pathlib.Path(prefix).parent / "stage"
shutil.unpack_archive(archive, unpacked, filter="tar") if sys.version_info >= (3, 12) else shutil.unpack_archive(archive, unpacked)
(inside,) = unpacked.iterdir()  # as Spack does: into the one directory of the archive
os.chdir(inside)

class Prefix(str):
    def __getattr__(self, name):
        return Prefix(os.path.join(self, name))

made.prefix = Prefix(prefix)
made.install(None, made.prefix)
made.check_install()
EOF
    said=$(python3 "$scratch/stand-in/run.py" "$recipe" "$out/$name.tar.gz" "$scratch/prefix" 2>&1) || failed "Spack's recipe: $said"
    expect "Spack's recipe" "$said" "^LD_PRELOAD=$scratch/prefix/lib/lapscope/liblapscope.so"
    cmp "$tree/bin/lapscope" "$scratch/prefix/bin/lapscope" || failed "the recipe has installed another file"
    passed "Spack: the recipe's sum and place of the tarball, and what it installs, with stand-ins for Spack"
    if ! has spack; then skipped "Spack itself: not here, and neither PyPI nor Debian has it"; return 0; fi
    mkdir -p "$scratch/repo/packages/lapscope"
    printf "repo:\n  namespace: 'lapscope'\n" >"$scratch/repo/repo.yaml"
    cp "$recipe" "$scratch/repo/packages/lapscope/package.py"
    said=$(cd "$out" && command spack -C "$scratch" repo add "$scratch/repo" && command spack spec lapscope 2>&1) ||
        failed "spack spec: $said"
    passed "Spack: spack spec"
}

spack_recipe
easybuild_recipe
