"""What Dask's workers do: run ``lapscope part``.

These functions travel to the workers by value, so that a worker needs Dask and the command, but not this package: nothing but
the standard library may be used here, and nothing else of this package.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
from typing import Any, Dict, List, Optional, Tuple, TypedDict

#: Sizes of so many files are compared, of names all: a directory of ten thousand files is not looked through on every worker.
SIZES = 64


class Job(TypedDict):
    """What holds for all parts of a run; a plain dict when it travels."""

    #: The command on the machine that asks, and what it says of its version.
    lapscope: str
    version: str
    #: The run as it was named, and what that is relative to.
    run: str
    directory: str
    #: :func:`files_of` there.
    files: Tuple[int, str]


class Asked(TypedDict):
    """A stage, as the workers get it."""

    job: Job
    #: Standard input of ``lapscope part``.
    question: bytes
    #: :func:`part` and :func:`merge`, pickled by value.
    part: bytes
    merge: bytes


def files_of(directory: str, run: str) -> Tuple[int, str]:
    """How many databases a run has, and a hash of their names and of some sizes; ``(0, "")`` where there is none.

    Raises:
        OSError: it cannot be read.
    """
    path = os.path.join(directory, run)
    if os.path.isfile(path):
        names, path = [os.path.basename(path)], os.path.dirname(path)
    else:
        names = sorted(name for name in os.listdir(path) if name.endswith(".db"))
    if not names:
        return 0, ""
    said = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape"))
    for name in names[:: max(1, len(names) // SIZES)]:
        said.update(b"\0%d" % os.stat(os.path.join(path, name)).st_size)
    return len(names), said.hexdigest()


def find(lapscope: str) -> Optional[str]:
    """The command at the same place as on the machine that asks, else in ``PATH``."""
    return shutil.which(lapscope) or shutil.which("lapscope")


def version_of(lapscope: str) -> str:
    """What the command says of its version; empty where it cannot be run."""
    try:
        done = subprocess.run([lapscope, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def trouble(job: Job) -> Optional[str]:
    """Why this machine cannot look at parts of the run, and the way out; ``None``: it can."""
    host, path, wanted = socket.gethostname(), os.path.join(job["directory"], job["run"]), job["lapscope"]
    found = find(wanted)
    if found is None:
        return (
            f"the worker on {host} has no command lapscope, neither as {wanted} nor in its PATH; install lapscope there, or "
            "where all machines see it"
        )
    version, here = version_of(found), job["version"]
    if version != here:
        return (
            f"the worker on {host} has another lapscope: {found} is {version or 'none that runs'}, here it is {here}; use "
            "the same on all machines"
        )
    try:
        files = files_of(job["directory"], job["run"])
    except OSError as error:
        return (
            f"the worker on {host} cannot see the run: {path}: {error.strerror}; the run must lie on a file system that all workers "
            "have at the same path"
        )
    count = job["files"][0]
    if files == job["files"]:
        return None
    seen = f"{files[0]} databases" if files[0] != count else "other databases"
    return (
        f"the worker on {host} sees other files: {path} has {seen} there, {count} here; the run must lie on a file system "
        "that all workers have at the same path"
    )


def part(parts: List[str], asked: Asked) -> bytes:
    """What the ranks at the places of these parts answer.

    Raises:
        RuntimeError: they cannot, on this worker; it says why.
    """
    check_once(asked["job"])
    ranks = [f"--ranks={places}" for places in parts]
    return answer(asked["job"], ranks, asked["question"], f"ranks {','.join(parts)}")


def merge(answers: List[bytes], asked: Asked) -> bytes:
    """Answers put together; raises as :func:`part`."""
    check_once(asked["job"])
    return answer(asked["job"], ["--merge"], b"".join(answers), "putting answers together")


def check_once(job: Job) -> None:
    """Workers may join, or be started again, after all were checked: each is checked before its first part.

    Raises:
        RuntimeError: this one cannot look at the run.
    """
    from distributed import get_worker

    worker: Any = get_worker()
    seen: Dict[Tuple[int, str], bool] = worker.__dict__.setdefault("lapscope_runs", {})
    if job["files"] not in seen:
        wrong = trouble(job)
        if wrong is not None:
            raise RuntimeError(wrong)
        seen[job["files"]] = True


def answer(job: Job, arguments: List[str], question: bytes, what: str) -> bytes:
    """Runs the command, on one processor as Dask's tasks are to; it does not outlive the worker."""
    line = [find(job["lapscope"]) or "lapscope", "part", *arguments]
    library = ctypes.CDLL(None)
    ends_with_parent = 1  # PR_SET_PDEATHSIG of prctl(2)
    environment = {"RAYON_NUM_THREADS": "1", **os.environ}
    done = subprocess.run(
        line,
        input=question,
        capture_output=True,
        cwd="/" if os.path.isabs(job["run"]) else job["directory"],
        env=environment,
        preexec_fn=lambda: library.prctl(ends_with_parent, signal.SIGKILL),
    )
    if done.returncode == 0:
        return done.stdout
    if done.returncode < 0:
        said = f"lapscope was ended by signal {-done.returncode}, as where memory is short: --memory bounds what a part takes"
    else:
        said = done.stderr.decode("utf-8", "replace").strip() or f"lapscope ended with code {done.returncode}"
    raise RuntimeError(f"{what}, on {socket.gethostname()}: {said}")
