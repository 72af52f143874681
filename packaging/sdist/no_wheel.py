"""The build backend of the source distribution. pip takes that one where no wheel fits, and then has to be told why."""

import platform
import sys

WHY = """
    lapscope {version}: there is no wheel that fits here, and none can be built by pip.

    Here: {system} on {machine}, {library}, Python {python}, {installer}.
    The wheels are for Linux on @MACHINES@ with glibc 2.17 or newer, and Python 3.9 or newer.
    {advice}
"""


def c_library():
    """The C library's name and version, as far as this interpreter tells."""
    name, version = platform.libc_ver()
    if name:
        return name + " " + version
    try:
        with open("/proc/self/maps") as maps:
            if "ld-musl" in maps.read():
                return "musl"
    except OSError:
        pass
    return "a C library that is not glibc"


def advice(system, library):
    if system != "Linux":
        return "Record where the MPI programs run; a run directory can be read on any such Linux machine."
    if "glibc" not in library:
        return (
            "On musl (Alpine) MPI programs cannot be recorded: use an image or a machine with glibc, for example Debian\n"
            "    or one of the RHEL family."
        )
    return (
        "Where those fit, this pip is older than 19.3 and does not know such wheels: python3 -m pip install --upgrade pip.\n"
        "    Otherwise build from the sources: make install PREFIX=$HOME/.local"
    )


def refuse(*_unused, **_unused_too):
    system, library = platform.system(), c_library()
    sys.exit(
        WHY.format(
            version="@VERSION@",
            system=system,
            machine=platform.machine(),
            library=library,
            python=platform.python_version(),
            installer=platform.python_implementation(),
            advice=advice(system, library),
        )
    )


get_requires_for_build_wheel = prepare_metadata_for_build_wheel = build_wheel = refuse
get_requires_for_build_sdist = build_sdist = refuse
