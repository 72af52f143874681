"""Runs looked at by real Dask clusters, against the same command without."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, List

import psutil
import pytest
from cluster import PATIENCE, Cluster, environment, lapscope, started, until

thorough = pytest.mark.skipif("LAPSCOPE_TEST_ALL" not in os.environ, reason="LEFT TO make check-all")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started(tmp_path_factory.mktemp("dask"), workers=2) as cluster:
        cluster.await_workers(2)
        yield cluster


def same(command: str, path: Path, engine: str, parts: int) -> None:
    """The command answers and says with the engine what it does without."""
    line = [command, path, "--format", "json", "--parts", parts]
    plain, asked = lapscope(*line), lapscope(*line, "--engine", engine)
    assert plain.returncode == 0 and plain.stdout
    assert (asked.returncode, asked.stderr, asked.stdout) == (0, plain.stderr, plain.stdout)


def test_a_cluster_on_this_machine_answers_the_same(path: Path) -> None:
    same("report", path, "dask", 3)


@pytest.mark.parametrize("command", ["overlap", *(pytest.param(more, marks=thorough) for more in ["report", "thresholds"])])
def test_a_scheduler_answers_the_same(cluster: Cluster, path: Path, command: str) -> None:
    same(command, path, cluster.engine, 8)


def test_a_run_that_is_named_relative_to_here_is_found_by_workers_elsewhere(cluster: Cluster, path: Path) -> None:
    plain = lapscope("overlap", path.name, "--format", "json", cwd=path.parent)
    asked = lapscope("overlap", path.name, "--format", "json", "--engine", cluster.engine, "--parts", "2", cwd=path.parent)
    assert (asked.returncode, asked.stderr, asked.stdout) == (0, b"", plain.stdout)


def workers_of(pid: int) -> List[psutil.Process]:
    """Processes below ``pid`` that have a part in work."""
    return [process for process in below(pid) if any(is_part(child) for child in below(process.pid, recursive=False))]


def below(pid: int, recursive: bool = True) -> List[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        found: List[psutil.Process] = psutil.Process(pid).children(recursive=recursive)
        return found
    return []


def is_part(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return "part" in process.cmdline()[1:2]
    return False


def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path, large: Path) -> None:
    plain = lapscope("overlap", large, "--format", "json")
    with started(tmp_path, workers=1) as cluster:
        nanny = cluster.worker()
        cluster.await_workers(2)
        line = [os.environ["LAPSCOPE_BIN"], "overlap", str(large), "--format", "json", "--parts", "8"]
        asked = subprocess.Popen(
            [*line, "--engine", cluster.engine], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        killed: List[int] = []

        def kills() -> bool:
            for process in workers_of(nanny):
                process.kill()
                killed.append(process.pid)
            return bool(killed) or asked.poll() is not None

        until(kills)
        out, said = asked.communicate(timeout=PATIENCE)
    assert killed, "nothing was in work"
    assert (asked.returncode, said, out) == (0, b"", plain.stdout)


def test_a_scheduler_that_is_killed_ends_the_command_with_what_to_do(tmp_path: Path, large: Path) -> None:
    with started(tmp_path, workers=1) as cluster:
        nanny = cluster.worker()
        cluster.await_workers(2)
        line = [os.environ["LAPSCOPE_BIN"], "overlap", str(large), "--parts", "8", "--engine", cluster.engine]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as asked:
            until(lambda: bool(workers_of(nanny)) or asked.poll() is not None)
            assert asked.poll() is None, "it was over before"
            cluster.kill_scheduler()
            out, said = asked.communicate(timeout=PATIENCE)
    assert asked.returncode == 1 and out == b"", said
    assert b"the Dask scheduler is gone" in said and b"start it" in said and said.count(b"\n") == 1, said


def test_a_database_that_cannot_be_read_is_left_out_as_without_dask(cluster: Cluster, path: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(path, run)
    # a page of rows in the middle of a table: not what is looked at before the parts are made
    with contextlib.closing(sqlite3.connect(run / "rank-3.db")) as database:
        leaves = "SELECT pageno FROM dbstat WHERE name = 'call' AND pagetype = 'leaf' ORDER BY path"
        pages = [page for (page,) in database.execute(leaves)]
    with open(run / "rank-3.db", "r+b") as file:
        file.seek((pages[len(pages) // 2] - 1) * 4096)
        file.write(b"\xff" * 4096)
    plain = lapscope("overlap", run, "--format", "json", "--parts", "4")
    asked = lapscope("overlap", run, "--format", "json", "--parts", "4", "--engine", cluster.engine)
    assert b"rank-3.db: damaged" in plain.stdout
    assert (asked.returncode, asked.stderr, asked.stdout) == (plain.returncode, plain.stderr, plain.stdout)


def test_a_scheduler_that_is_not_there_is_named_soon(path: Path) -> None:
    began = time.monotonic()
    asked = lapscope("overlap", path, "--engine", "dask://127.0.0.1:9")
    assert asked.returncode != 0 and asked.stdout == b""
    assert b"no Dask scheduler answers at tcp://127.0.0.1:9" in asked.stderr and b"start one" in asked.stderr
    assert asked.stderr.count(b"\n") == 1, asked.stderr
    assert time.monotonic() - began < 60


def test_a_worker_that_does_not_see_the_run_is_named(tmp_path: Path, path: Path) -> None:
    hides = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'mount -t tmpfs none "{path}" && exec "$@"', "sh"]
    if subprocess.run([*hides, "true"], capture_output=True).returncode != 0:
        pytest.skip("NOT TESTED: a worker that does not see the run: this user has no mount namespaces")
    with started(tmp_path, workers=1) as cluster:
        cluster.worker(under=hides)
        cluster.await_workers(2)
        asked = lapscope("overlap", path, "--engine", cluster.engine)
    assert asked.returncode != 0 and asked.stdout == b""
    assert f"sees other files: {path} has 0 databases there, 8 here".encode() in asked.stderr
    assert os.uname().nodename.encode() in asked.stderr and b"same path" in asked.stderr


@pytest.mark.parametrize("local", [False, pytest.param(True, marks=thorough)])
def test_a_full_disk_is_said_with_the_way_out(cluster: Cluster, path: Path, tmp_path: Path, local: bool) -> None:
    small = f'mount -t tmpfs -o size=4k none "{tmp_path}" && exec "$@"'
    fills = ["unshare", "--map-root-user", "--mount", "sh", "-c", small, "sh"]
    if subprocess.run([*fills, "true"], capture_output=True).returncode != 0:
        pytest.skip("NOT TESTED: a full disk: this user has no mount namespaces")
    line = [*fills, os.environ["LAPSCOPE_BIN"], "overlap", str(path), "--parts", "4"]
    plain = lapscope("overlap", path)
    in_parts = subprocess.run(line, capture_output=True, env=environment(TMPDIR=str(tmp_path)), timeout=PATIENCE)
    assert (in_parts.returncode, in_parts.stdout) == (0, plain.stdout), "what is kept there saves time, nothing else"
    line += ["--engine", "dask" if local else cluster.engine]
    asked = subprocess.run(line, capture_output=True, env=environment(TMPDIR=str(tmp_path)), timeout=PATIENCE)
    assert asked.returncode == 1 and asked.stdout == b""
    assert b"on another disk" in asked.stderr and asked.stderr.count(b"\n") == 1, asked.stderr


def test_a_part_that_fails_is_named_with_its_ranks(cluster: Cluster, path: Path, tmp_path: Path) -> None:
    (tmp_path / "question").write_bytes(b"this is none")
    stage = {"question": str(tmp_path / "question"), "parts": ["0-3", "4-7"], "answer": str(tmp_path / "answer")}
    line = [sys.executable, "-m", "lapscope.engine", "--scheduler", cluster.address, "--run", str(path)]
    with subprocess.Popen(
        [*line, "--lapscope", os.environ["LAPSCOPE_BIN"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as engine:
        out, said = engine.communicate(json.dumps(stage).encode() + b"\n\n", timeout=PATIENCE)
    ready, *done, failed = map(json.loads, out.splitlines())
    assert ready == "ready" and done == [] and engine.returncode == 1
    why = failed["failed"]
    assert "ranks 0-3" in why or "ranks 4-7" in why, why
    assert os.uname().nodename in why and "the question cannot be read" in why
    assert said == b"" and not (tmp_path / "answer").exists()


@thorough
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind_when_the_command_is_ended(large: Path, ending: signal.Signals) -> None:
    line = [os.environ["LAPSCOPE_BIN"], "overlap", str(large), "--engine", "dask", "--parts", "8"]
    asked = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    processes: List[psutil.Process] = []

    def works() -> bool:
        processes[:] = below(asked.pid)
        return bool(workers_of(asked.pid)) or asked.poll() is not None

    with asked:
        until(works)
        assert asked.poll() is None, "it was over before"
        asked.send_signal(ending)
    _, left = psutil.wait_procs(processes, timeout=30)
    for process in left:
        process.kill()
    assert not left
