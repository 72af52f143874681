"""A recorded run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Optional, Sequence, Type

import pyarrow
import pyarrow.dataset

from .command import AnyPath, Command
from .errors import RunError

#: Hosts are text, also where all of them look like numbers.
_NODES = pyarrow.dataset.partitioning(pyarrow.schema([("node", pyarrow.string())]), flavor="hive")


#: Of a run or a part of it; what has two ends is two columns.
_EFFICIENCY = (
    [(name, pyarrow.int64()) for name in ("useful_ns", "most_useful_ns", "runtime_ns")]
    + [(name, pyarrow.float64()) for name in ("parallel_efficiency", "load_balance", "communication_efficiency")]
    + [
        (f"{name}_efficiency_{end}", pyarrow.float64())
        for name in ("serialisation", "transfer")
        for end in ("low", "high")
    ]
)
_EFFICIENCIES = pyarrow.schema([("kind", pyarrow.string()), ("name", pyarrow.string()), *_EFFICIENCY])
_SCALING = pyarrow.schema(
    [("run", pyarrow.string()), ("ranks", pyarrow.int64())]
    + _EFFICIENCY
    + [(name, pyarrow.float64()) for name in ("speedup", "speedup_efficiency", "global_efficiency")]
    + [(f"{name}_scaling", pyarrow.float64()) for name in ("computation", "instruction", "ipc", "frequency")]
    + [("instructions", pyarrow.int64()), ("cycles", pyarrow.int64())]
    + [(name, pyarrow.float64()) for name in ("ipc", "frequency_hz")]
)


def _flat(numbers: Dict[str, Any]) -> Dict[str, Any]:
    """A row of them: what has two ends is two columns."""
    row: Dict[str, Any] = {}
    for key, value in numbers.items():
        row.update({f"{key}_{end}": of for end, of in value.items()} if isinstance(value, dict) else {key: value})
    return row


def scaling(runs: Sequence[AnyPath], *, weak: bool = False, command: Optional[AnyPath] = None) -> pyarrow.Table:
    """How a program scales, by POP's factors: a row for each run, those of few ranks first; null is what is not known.

    Columns are the keys of ``lapscope report RUN RUN...`` in docs/json.md.

    Args:
        runs: two or more, of growing numbers of ranks.
        weak: each rank has as much work in all of them; else all of them do the same work.
        command: as of :func:`open`.

    Raises:
        CommandNotFound: there is no command ``lapscope``.
        RunError: a run cannot be read, or there is only one.
    """
    if len(runs) < 2:
        raise RunError("one run does not scale: name several, of growing numbers of ranks")
    answer = Command(command).json("report", *runs, "--scaling", "weak" if weak else "strong")
    rows = [_flat({**(run.pop("efficiency") or {}), **run}) for run in answer["runs"]]
    return pyarrow.Table.from_pylist(rows, schema=_SCALING)


class Run:
    """A run; use :func:`open` to make one.

    Tables are described in docs/parquet.md: times are nanoseconds, moments are on one clock, sizes are bytes. They are
    exported when the first of them is asked for.
    """

    def __init__(self, path: AnyPath, command: Command, tables: Optional[AnyPath]) -> None:
        self.path = Path(path)
        self._command = command
        self._kept = None if tables is None else Path(tables)
        self._temporary: Optional[tempfile.TemporaryDirectory[str]] = None

    def requests(self, columns: Optional[Sequence[str]] = None, filter: Optional[Any] = None) -> pyarrow.Table:
        """One row for each request, with the host of its rank as ``node``.

        Args:
            columns: those that are wanted; all when not given.
            filter: rows that are wanted, a ``pyarrow.compute.Expression``.
        """
        return self._partitioned("requests", columns, filter)

    def calls(self, columns: Optional[Sequence[str]] = None, filter: Optional[Any] = None) -> pyarrow.Table:
        """One row for each call that blocked, ended requests or managed something; arguments as of :meth:`requests`."""
        return self._partitioned("calls", columns, filter)

    def messages(self, columns: Optional[Sequence[str]] = None, filter: Optional[Any] = None) -> pyarrow.Table:
        """One row for each matched message, with the sender's host as ``node``; arguments as of :meth:`requests`."""
        return self._partitioned("messages", columns, filter)

    def ranks(self) -> pyarrow.Table:
        """One row for each process."""
        return pyarrow.dataset.dataset(self.tables / "ranks.parquet").to_table()

    def sites(self) -> pyarrow.Table:
        """One row for each call site, which other tables refer to by ``site_id``."""
        return pyarrow.dataset.dataset(self.tables / "sites.parquet").to_table()

    def report(self) -> Dict[str, Any]:
        """What ``lapscope report`` says, with all call sites; keys are described in docs/json.md."""
        return self.json("report", "--top", "0")

    def efficiencies(self) -> pyarrow.Table:
        """POP's efficiencies, fractions: a row for the run, for all its steps, and for each region that it marks.

        ``kind`` is ``run``, ``steps`` or ``region``, ``name`` that of the region; ``serialisation_efficiency`` and
        ``transfer_efficiency`` are known to within ``_low`` and ``_high``. Where they are not known there is no row.
        """
        report = self.report()
        steps = report["steps"] or {}
        parts = [("run", None, report["efficiency"]), ("steps", None, steps.get("efficiency"))]
        parts += [("region", region["name"], region["efficiency"]) for region in report["regions"]]
        rows = [{"kind": kind, "name": name, **_flat(numbers)} for kind, name, numbers in parts if numbers]
        return pyarrow.Table.from_pylist(rows, schema=_EFFICIENCIES)

    def overlap(self) -> Dict[str, Any]:
        """What ``lapscope overlap`` says, with all call sites; keys are described in docs/json.md."""
        return self.json("overlap", "--top", "0")

    def json(self, command: str, *options: str) -> Dict[str, Any]:
        """What any command that reads a run answers with ``--format json``: ``run.json("thresholds", "--rank", "3")``."""
        return self._command.json(command, *options, self.path)

    @property
    def tables(self) -> Path:
        """The directory of Parquet files, which are exported now unless they were before.

        Raises:
            RunError: the run cannot be read, or the files cannot be written.
        """
        directory = self._kept
        if directory is None:
            if self._temporary is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="lapscope-tables-")
            directory = Path(self._temporary.name) / "tables"
        if not directory.exists():
            self._command.run("export", "parquet", directory, self.path)
        elif not (directory / "sites.parquet").is_file():
            raise RunError(f"{directory} exists and holds no tables of lapscope; name another directory for them")
        return directory

    def close(self) -> None:
        """Takes away what was exported, unless a directory was named for it. Tables that were read stay as they are."""
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"lapscope.open({os.fspath(self.path)!r})"

    def _partitioned(self, table: str, columns: Optional[Sequence[str]], filter: Optional[Any]) -> pyarrow.Table:
        files = pyarrow.dataset.dataset(self.tables / table, format="parquet", partitioning=_NODES)
        wanted = None if columns is None else list(columns)
        return files.to_table(columns=wanted, filter=filter)


def open(path: AnyPath, *, command: Optional[AnyPath] = None, tables: Optional[AnyPath] = None) -> Run:
    """Opens a run.

    Args:
        path: run directory or database.
        command: the executable ``lapscope``; else ``LAPSCOPE_BIN`` names it, else it is looked for in ``PATH``.
        tables: directory for Parquet files: those that are there are taken, else they are exported into it. When not given,
            they are in a temporary directory until the run is closed.

    Raises:
        CommandNotFound: there is no command ``lapscope``.
        RunError: there is nothing of that name. What is wrong with a run shows when something is asked of it, as the same
            error.
    """
    found = Command(command)
    if not os.path.exists(path):
        raise RunError(f"{os.fspath(path)}: there is no such run")
    return Run(path, found, tables)
