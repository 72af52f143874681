"""A scheduler and workers on this machine, started as a site starts them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

import psutil

#: Of a cluster to start, of a command to end; seconds.
PATIENCE = 120


class Cluster:
    """Ends with the ``with`` it was made by."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: List[subprocess.Popen[bytes]] = []
        self.address = ""

    def begin(self) -> None:
        file = self.directory / "scheduler.json"
        self._start("dask_scheduler", ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)])

        def is_told() -> bool:
            with contextlib.suppress(OSError, ValueError):
                self.address = str(json.loads(file.read_text())["address"])
            return bool(self.address)

        until(is_told)

    def await_workers(self, count: int) -> None:
        awaits = "import sys, distributed; distributed.Client(sys.argv[1]).wait_for_workers(int(sys.argv[2]))"
        line = [sys.executable, "-c", awaits, self.address, str(count)]
        subprocess.run(line, capture_output=True, timeout=PATIENCE, check=True)

    @property
    def engine(self) -> str:
        return "dask" + self.address[len("tcp") :]

    def worker(self, under: Sequence[str] = ()) -> int:
        """Starts a worker, below ``under``; the process that looks after it."""
        options = ["--nthreads", "1", "--host", "127.0.0.1", "--local-directory", str(self.directory)]
        process = self._start("dask_worker", [self.address, "--no-dashboard", *options], under)
        return process.pid

    def kill_scheduler(self) -> None:
        self._processes[0].kill()

    def end(self) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(psutil.NoSuchProcess):
                for below in psutil.Process(process.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        below.kill()
            process.kill()
            process.wait()

    def _start(self, program: str, options: List[str], under: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        line = [*under, sys.executable, "-m", f"distributed.cli.{program}", *options]
        # no dashboard: another scheduler may have its port
        environment = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "error"}
        if program == "dask_scheduler":
            line.append("--no-dashboard")
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=self.directory,
        )
        self._processes.append(process)
        return process


@contextlib.contextmanager
def started(directory: Path, workers: int) -> Iterator[Cluster]:
    cluster = Cluster(directory)
    try:
        cluster.begin()
        for _ in range(workers):
            cluster.worker()
        yield cluster
    finally:
        cluster.end()


def until(is_so: object, patience: float = PATIENCE) -> None:
    """Waits; fails when it takes too long."""
    assert callable(is_so)
    ends = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < ends, f"not within {patience} s"
        time.sleep(0.002)


def environment(**more: str) -> Dict[str, str]:
    """In which the command finds this Python, and the package in it."""
    return {**os.environ, "LAPSCOPE_PYTHON": sys.executable, **more}


def lapscope(*arguments: object, cwd: Optional[Path] = None) -> subprocess.CompletedProcess[bytes]:
    """The command, as it ended."""
    line = [os.environ["LAPSCOPE_BIN"], *map(str, arguments)]
    return subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), cwd=cwd, timeout=PATIENCE
    )
