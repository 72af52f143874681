# Copyright (c) 2026, lapscope developers
#
# SPDX-License-Identifier: BSD-3-Clause
"""Spack installs the portable tree: one build serves every MPI, so there is no dependency on `mpi` and nothing to
compile. `make dist` writes this file with version, machine and sum filled in; put it into a repository of yours as
packages/lapscope/package.py. The tarball is looked for in the directory that spack is called in."""

import os
import platform

from spack.package import *

_tarballs = {
    "@MACHINE@": "@SHA256@",
}


class Lapscope(Package):
    """Tells how much of an MPI program's non-blocking communication is overlapped with computation, how much could be,
    why it is not, and what to change: for binaries as they are, by LD_PRELOAD, under every MPI with the ABI of Open MPI,
    of MPICH, or of MPI 5.0."""

    manual_download = True

    license("BSD-3-Clause")

    version(
        "@VERSION@",
        sha256=_tarballs.get(platform.machine(), "0" * 64),
        url=f"file://{os.getcwd()}/lapscope-@VERSION@-linux-{platform.machine()}.tar.gz",
    )

    # The binaries are complete, and linked against glibc 2.17.
    conflicts("platform=darwin")
    conflicts("platform=windows")
    for _other in {"x86_64", "aarch64"} - set(_tarballs):
        conflicts(f"target={_other}:", msg=f"this recipe has no tarball for {_other}")

    def install(self, spec, prefix):
        for directory in ("bin", "lib", "share"):
            install_tree(directory, join_path(prefix, directory))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.lapscope)("run", "--dry-run", "--", "true")
