"""The command ``lapscope``, which does the work."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from .errors import CommandNotFound, RunError

log = logging.getLogger("lapscope")

AnyPath = Union[str, "os.PathLike[str]"]

#: Names the command where ``PATH`` does not lead to it.
VARIABLE = "LAPSCOPE_BIN"

INSTALL = f"install it (docs/install.md in lapscope's sources), set {VARIABLE}, or name it: lapscope.open(..., command=PATH)"


class Command:
    """Finds the command and runs it.

    Args:
        path: the executable; else ``LAPSCOPE_BIN`` names it, else it is the one that came with this package, else the one
            in ``PATH``.

    Raises:
        CommandNotFound: there is none.
    """

    def __init__(self, path: Optional[AnyPath] = None) -> None:
        self.path = _find(path)

    def run(self, *arguments: AnyPath, answers: Sequence[int] = ()) -> str:
        """Standard output of the command; what it says on standard error is logged. ``answers`` are exit codes besides 0 of a
        command that answers by them.

        Raises:
            CommandNotFound: it cannot be started.
            RunError: it failed, and said why.
        """
        line = [str(self.path), *(os.fspath(argument) for argument in arguments)]
        try:
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as error:
            raise CommandNotFound(f"{self.path} cannot be started: {error.strerror}; {INSTALL}") from error
        said = _said(done.stderr)
        if done.returncode != 0 and not (done.returncode in answers and done.stdout):
            raise RunError(said or f"{' '.join(line)} ended with code {done.returncode}")
        for sentence in said.splitlines():
            log.warning("%s", sentence)
        return done.stdout.decode("utf-8", "replace")

    def json(self, *arguments: AnyPath) -> Dict[str, Any]:
        """What the command answers with ``--format json``, as docs/json.md describes it.

        Raises:
            CommandNotFound, RunError: as :meth:`run`.
        """
        answer = json.loads(self.run(*arguments, "--format", "json"))
        assert isinstance(answer, dict)
        return answer


def check(
    runs: Union[AnyPath, Sequence[AnyPath]],
    *,
    against: Sequence[AnyPath] = (),
    maximum: Optional[Mapping[str, Union[str, float]]] = None,
    minimum: Optional[Mapping[str, Union[str, float]]] = None,
    tolerance: Optional[float] = None,
    advice: Optional[int] = None,
    command: Optional[AnyPath] = None,
) -> Dict[str, Any]:
    """What ``lapscope check`` answers; its keys are described in docs/json.md.

    >>> lapscope.check("runs/a", maximum={"exposed": "20%"})["verdict"]

    Args:
        runs: one run or several.
        against: earlier runs, or a file that ``--write-baseline`` wrote.
        maximum: numbers of the report by name, with the most that each may be; ``minimum`` likewise.
        tolerance: a fraction; against earlier runs a smaller change is none.
        advice: the place of the piece of advice of the first earlier run whose gain is asked for.
        command: as of :class:`Command`.

    Raises:
        CommandNotFound: as :class:`Command`.
        RunError: a run cannot be read, or there is no such number.
    """
    listed: Sequence[AnyPath] = [runs] if isinstance(runs, (str, os.PathLike)) else runs
    words = [os.fspath(run) for run in listed]
    for option, limits in (("--max", maximum), ("--min", minimum)):
        words += [f"{option}={name}={value}" for name, value in (limits or {}).items()]
    words += [f"--against={os.fspath(run)}" for run in against]
    words += [] if tolerance is None else [f"--tolerance={tolerance}"]
    words += [] if advice is None else [f"--advice={advice}"]
    answer = json.loads(Command(command).run("check", *words, "--format", "json", answers=(1, 2)))
    assert isinstance(answer, dict)
    return answer


def _find(path: Optional[AnyPath]) -> Path:
    named, by = (path, "command") if path is not None else (os.environ.get(VARIABLE), VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise CommandNotFound(f"{by} names {os.fspath(named)}, which is no program; {INSTALL}")
        return Path(found)
    own = _installed_with_this_package()
    if own is not None:
        return own
    found = shutil.which("lapscope")
    if found is None:
        raise CommandNotFound(f"there is no command lapscope in PATH; {INSTALL}")
    return Path(found)


def _installed_with_this_package() -> Optional[Path]:
    """The command of the wheel: of the same version, and found where its environment is not activated."""
    try:
        files = metadata.files("lapscope") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(os.path.abspath(file.locate()))
        if file.parts[-2:] == ("bin", "lapscope") and os.access(path, os.X_OK):
            return path
    return None


def _said(stderr: bytes) -> str:
    """Without the name that the command puts in front."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return "\n".join(line[len("lapscope: ") :] if line.startswith("lapscope: ") else line for line in lines)
