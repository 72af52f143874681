"""What a worker says before it looks at a run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from lapscope import tasks


@pytest.fixture
def job(path: Path) -> tasks.Job:
    lapscope = os.environ["LAPSCOPE_BIN"]
    files = tasks.files_of("/", str(path))
    version = tasks.version_of(lapscope)
    return {"lapscope": lapscope, "version": version, "run": str(path), "directory": "/", "files": files}


def trouble(job: tasks.Job) -> str:
    why = tasks.trouble(job)
    assert why is not None and os.uname().nodename in why
    return why


def test_a_machine_that_sees_all_is_fine(job: tasks.Job) -> None:
    assert tasks.trouble(job) is None
    assert job["files"][0] == 8


def test_a_single_database_is_a_run(job: tasks.Job, path: Path) -> None:
    count, _ = tasks.files_of(str(path), "rank-0.db")
    assert count == 1


def test_a_run_that_is_not_there(job: tasks.Job, tmp_path: Path) -> None:
    job["run"] = str(tmp_path / "none")
    why = trouble(job)
    assert f"{tmp_path}/none: No such file or directory" in why and "same path" in why


def test_a_copy_that_lacks_a_file_and_one_that_has_another(job: tasks.Job, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(path, copy)
    job["run"] = str(copy)
    assert tasks.trouble(job) is None
    with open(copy / "rank-7.db", "ab") as file:
        file.write(b"more")
    assert "other databases there, 8 here" in trouble(job)
    (copy / "rank-7.db").unlink()
    assert "7 databases there, 8 here" in trouble(job)


def test_another_version(job: tasks.Job) -> None:
    job["version"] = "lapscope 0.0.1"
    why = trouble(job)
    assert "another lapscope" in why and "here it is lapscope 0.0.1" in why and "the same on all machines" in why


def test_no_command(job: tasks.Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job["lapscope"] = str(tmp_path / "lapscope")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no command lapscope" in trouble(job)
    # one in PATH is as good
    os.symlink(os.environ["LAPSCOPE_BIN"], tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "lapscope")
    job["lapscope"] = "/nowhere/lapscope"
    assert tasks.trouble(job) is None
