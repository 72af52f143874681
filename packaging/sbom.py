#!/usr/bin/env python3
"""Writes what an installed tree is made of, as CycloneDX 1.5 in JSON: sbom.py TREE FILE

Crates, as cargo resolves them for the command; the C libraries inside of the recorders; what compilers add; the tree's
own binaries with their sums. The same commit and tree give the same bytes. SOURCE_DATE_EPOCH is its time; called by
packaging/extras.sh, which names the rest.

Crates that only work while others are compiled (procedural macros and what they use) have the scope "excluded".
"""

import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRIPLE = os.environ.get("MACHINE", platform.machine()) + "-unknown-linux-gnu"
CARGO = os.environ.get("CARGO", "cargo")


def said(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()


def setting(script, name):
    """The value of a shell variable, from the script that builds with it."""
    return re.search(rf"^{name}=(\"[^\"\n]*|[^\s\"]*)", (ROOT / "packaging" / script).read_text("utf-8"), re.M).group(1).strip('"')


def licensed(expression):
    """Cargo's older spelling of OR is a stroke."""
    return [{"expression": re.sub(r"\s*/\s*", " OR ", expression)}]


def crates_of(edges):
    """(name, version) of the crates behind these edges from the command."""
    lines = said(CARGO, "tree", "--locked", "--package", "lapscope", "--edges", edges, "--target", TRIPLE, "--prefix",
                 "none", "--format", "{p}").splitlines()
    return {tuple(line.split()[:2]) for line in lines if line}


def checksums():
    """(name, vVERSION) -> sha256 of the crate's archive, from Cargo.lock."""
    found = re.findall(
        r'name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"', (ROOT / "Cargo.lock").read_text("utf-8")
    )
    return {(name, "v" + version): checksum for name, version, checksum in found}


def crate(package, scope, checksum):
    name, version = package["name"], package["version"]
    component = {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "scope": scope,
        "licenses": licensed(package["license"]),
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return component


def crates():
    """Components of all crates, and for each what it depends on."""
    linked, all_of_them = crates_of("normal,no-proc-macro"), crates_of("normal")
    metadata = json.loads(said(CARGO, "metadata", "--locked", "--format-version", "1", "--filter-platform", TRIPLE))
    key = {package["id"]: (package["name"], "v" + package["version"]) for package in metadata["packages"]}
    sums = checksums()
    components, edges = [], {}
    for package in metadata["packages"]:
        own = key[package["id"]]
        if own in all_of_them:
            components.append(crate(package, "required" if own in linked else "excluded", sums.get(own)))
    for node in metadata["resolve"]["nodes"]:
        if key[node["id"]] in all_of_them:
            used = [key[dep["pkg"]] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            edges[reference(key[node["id"]])] = sorted(reference(one) for one in used if one in all_of_them)
    return components, edges


def reference(own):
    return f"pkg:cargo/{own[0]}@{own[1][1:]}"


def part(name, version, licence, description, **more):
    purl = f"pkg:generic/{name}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "description": description,
            "scope": "required", "licenses": licensed(licence), "purl": purl, **more}


def sqlite_version(components):
    sys_crate = next(one for one in components if one["name"] == "libsqlite3-sys")
    manifest = next(
        package["manifest_path"]
        for package in json.loads(said(CARGO, "metadata", "--locked", "--format-version", "1"))["packages"]
        if package["name"] == "libsqlite3-sys" and package["version"] == sys_crate["version"]
    )
    header = pathlib.Path(manifest).parent / "sqlite3/sqlite3.h"
    return re.search(r'#define SQLITE_VERSION\s+"(.*)"', header.read_text("utf-8")).group(1)


def native(components):
    """What is neither lapscope's own nor a crate."""
    zig = re.search(r"ziglang==([0-9.]+)", setting("tools.sh", "packages")).group(1)
    zstd = next(one["version"] for one in components if one["name"] == "zstd-sys").split("zstd.")[1]
    return [
        part("sqlite", sqlite_version(components), "blessing", "inside of the recorders and, by libsqlite3-sys, the command"),
        part("zstd", zstd, "BSD-3-Clause", "inside of the command, by zstd-sys"),
        part("rust-std", said("rustc", "--version").split()[1], "MIT OR Apache-2.0", "Rust's standard library, inside of the command"),
        part("libgcc", said(os.environ.get("CC", "cc"), "-dumpfullversion").strip(),
             "GPL-3.0-or-later WITH GCC-exception-3.1", "divisions of 128 bits, inside of the recorders"),
        part("zig-compiler-rt", zig, "MIT", "what zig adds to the command, where the processor has no instruction for it"),
        part("llvm-libunwind", zig, "Apache-2.0 WITH LLVM-exception", "inside of the command, from zig, for panics"),
        part("glibc-start-files", setting("common.sh", "glibc"), "LGPL-2.1-or-later WITH GCC-exception-2.0",
             "glibc's code around main, from zig; the C library itself is the system's"),
    ]


def files(tree):
    for path in sorted([tree / "bin/lapscope", *(tree / "lib/lapscope").iterdir()]):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        name = path.relative_to(tree).as_posix()
        yield {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def document(tree):
    components, edges = crates()
    extra = native(components)
    root = next(one for one in components if one["name"] == "lapscope")
    components.remove(root)
    root = {**root, "type": "application"}
    root.pop("scope")
    edges[root["bom-ref"]] = sorted(edges[root["bom-ref"]] + [one["bom-ref"] for one in extra])
    components = sorted(components + extra, key=lambda one: one["bom-ref"]) + list(files(tree))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))
    text = json.dumps(components, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, "lapscope:" + moment + text)),
        "version": 1,
        "metadata": {"timestamp": moment, "component": root},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": used} for ref, used in sorted(edges.items())],
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text = json.dumps(document(pathlib.Path(sys.argv[1])), indent=1) + "\n"
    pathlib.Path(sys.argv[2]).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
