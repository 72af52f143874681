"""Tables against what the command itself says."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path

import lapscope
import pyarrow.compute as compute
import pytest


def total(run: lapscope.Run, column: str) -> int:
    value = compute.sum(run.requests(columns=[column])[column]).as_py()
    assert isinstance(value, int)
    return value


def test_sums_are_those_of_overlap(run: lapscope.Run) -> None:
    totals = run.overlap()["totals"]
    assert run.requests().num_rows == totals["requests"] > 0
    for column in ["bytes", "post_ns", "exposed_ns", "exposed_late_partner_ns", "exposed_transfer_ns", "reference_ns"]:
        assert total(run, column) == totals[column], column
    assert totals["exposed_ns"] > 0


def test_efficiencies_are_those_of_the_report(run: lapscope.Run) -> None:
    rows = run.efficiencies().to_pylist()
    found = run.report()["efficiency"]
    assert rows[0]["kind"] == "run"
    for name in ["useful_ns", "parallel_efficiency", "load_balance", "communication_efficiency"]:
        assert rows[0][name] == found[name]
    product = rows[0]["load_balance"] * rows[0]["communication_efficiency"]
    assert product == pytest.approx(rows[0]["parallel_efficiency"])


def test_efficiencies_are_the_rows_of_the_command(run: lapscope.Run) -> None:
    csv = lapscope.Command().run("report", run.path, "--efficiency", "--format", "csv").splitlines()
    table = run.efficiencies()
    assert csv[0].split(",") == table.column_names
    assert len(csv) - 1 >= table.num_rows > 0


def test_scaling_is_that_of_the_command(path: Path) -> None:
    table = lapscope.scaling([path, path])
    rows = table.to_pylist()
    assert [row["speedup"] for row in rows] == [1.0, 1.0]
    assert rows[0]["ranks"] > 0 and rows[0]["instructions"] is None
    assert rows[0]["global_efficiency"] == rows[0]["parallel_efficiency"]
    csv = lapscope.Command().run("report", path, path, "--format", "csv").splitlines()
    assert set(csv[0].split(",")) <= set(table.column_names)
    with pytest.raises(lapscope.RunError, match="one run does not scale"):
        lapscope.scaling([path])


def test_check_answers(path: Path) -> None:
    assert lapscope.check(path, maximum={"exposed": 1.0}, against=[path])["verdict"] == "holds"
    short = lapscope.check([path], minimum={"requests": 1e9})
    assert (short["verdict"], short["checks"][0]["kind"]) == ("falls_short", "min")
    with pytest.raises(lapscope.RunError, match="nearest"):
        lapscope.check(path, maximum={"exposd": "20%"})


def test_messages_have_both_ends(run: lapscope.Run) -> None:
    messages = run.messages()
    assert messages.num_rows == run.overlap()["matching"]["messages"] > 0
    later = compute.greater(messages["receive_completion_end_ns"], messages["send_post_begin_ns"])
    assert compute.all(later).as_py()


def test_calls_are_those_of_the_database(run: lapscope.Run, path: Path) -> None:
    sql = "SELECT count(*), sum(duration_ns) FROM call"
    counted = lapscope.Command().run("sql", path, sql, "--format", "csv").splitlines()[-1]
    calls = run.calls(columns=["duration_ns"])
    assert counted == f"{calls.num_rows},{compute.sum(calls['duration_ns'])}"
    assert calls.num_rows == 3440


def test_nodes_are_partitions_and_rows_can_be_chosen(run: lapscope.Run) -> None:
    hosts = set(run.ranks()["node"].to_pylist())
    assert len(hosts) == 3
    some = run.requests(columns=["rank", "node"], filter=compute.field("node") == sorted(hosts)[0])
    assert set(some["rank"].to_pylist()) == {0, 1, 2}
    assert set(run.requests(columns=["node"])["node"].to_pylist()) == hosts


def test_sites_have_names(run: lapscope.Run) -> None:
    sites = run.sites().to_pylist()
    used = set(run.requests(columns=["site_id"])["site_id"].to_pylist())
    assert used <= {site["site_id"] for site in sites}
    assert {site["call"] for site in sites} >= {"MPI_Isend", "MPI_Irecv", "MPI_Waitall"}


def test_tables_can_be_kept(path: Path, tmp_path: Path) -> None:
    kept = tmp_path / "tables"
    with lapscope.open(path, tables=kept) as run:
        rows = run.ranks().num_rows
    written = (kept / "ranks.parquet").stat().st_mtime_ns
    with lapscope.open(path, tables=kept) as again:
        assert again.ranks().num_rows == rows == 8
    assert (kept / "ranks.parquet").stat().st_mtime_ns == written


def test_what_was_not_kept_goes(path: Path) -> None:
    run = lapscope.open(path)
    tables = run.tables
    assert tables.is_dir()
    run.close()
    assert not tables.exists()


def test_parts_give_the_same_rows(run: lapscope.Run, path: Path, tmp_path: Path) -> None:
    for parts in ["1", "3", "8"]:
        kept = tmp_path / parts
        lapscope.Command().run("export", "parquet", kept, path, "--parts", parts)
        with lapscope.open(path, tables=kept) as again:
            assert again.ranks() == run.ranks()
            assert again.sites() == run.sites()
            for table in ["requests", "calls", "messages"]:
                files = sorted(file.relative_to(kept / table) for file in (kept / table).rglob("*.parquet"))
                assert len(files) >= int(parts)
                order = [("source" if table == "messages" else "rank", "ascending")]
                assert getattr(again, table)().sort_by(order) == getattr(run, table)().sort_by(order), (table, parts)


def test_no_command(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(lapscope.CommandNotFound, match="command names .*nowhere, which is no program; install it"):
        lapscope.open(path, command=tmp_path / "nowhere")
    monkeypatch.setenv("LAPSCOPE_BIN", str(tmp_path / "nowhere"))
    with pytest.raises(lapscope.CommandNotFound, match="LAPSCOPE_BIN names"):
        lapscope.open(path)
    monkeypatch.delenv("LAPSCOPE_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(lapscope.CommandNotFound, match="no command lapscope in PATH"):
        lapscope.open(path)


def test_the_command_of_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAPSCOPE_BIN", raising=False)
    own = tmp_path / "environment/bin/lapscope"
    site = tmp_path / "environment/lib/site-packages"
    about = site / "lapscope-9.9.dist-info"
    for directory in [own.parent, about, tmp_path / "other"]:
        directory.mkdir(parents=True)
    for command in [own, tmp_path / "other/lapscope"]:
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lapscope\nVersion: 9.9\n")
    (about / "RECORD").write_text("lapscope/__init__.py,,\n../../bin/lapscope,,\n")
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert lapscope.Command().path == tmp_path / "other/lapscope"
    monkeypatch.syspath_prepend(str(site))
    assert lapscope.Command().path == own


def test_a_command_that_cannot_be_started(path: Path, tmp_path: Path) -> None:
    broken = tmp_path / "lapscope"
    broken.write_bytes(b"\x7fELF, and then nothing of the kind")
    broken.chmod(0o755)
    with pytest.raises(lapscope.CommandNotFound, match="cannot be started"):
        lapscope.open(path, command=broken).report()


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(lapscope.RunError, match="there is no such run"):
        lapscope.open(tmp_path / "nothing")
    with lapscope.open(tmp_path) as empty, pytest.raises(lapscope.RunError, match=str(tmp_path)):
        empty.requests()
    with lapscope.open(tmp_path, tables=tmp_path) as mixed_up, pytest.raises(lapscope.RunError, match="no tables"):
        mixed_up.requests()


def test_a_damaged_run_says_what_is_wrong(path: Path, tmp_path: Path) -> None:
    (tmp_path / "rank-0.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with lapscope.open(tmp_path) as run:
        with pytest.raises(lapscope.RunError, match="rank-0.db") as said:
            run.messages()
        assert not str(said.value).startswith("lapscope: ")


def test_part_of_a_run_is_read_and_the_rest_is_told(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    subprocess.run(["cp", *sorted(str(file) for file in path.glob("rank-[0-5].db")), str(tmp_path)], check=True)
    with caplog.at_level(logging.WARNING, logger="lapscope"), lapscope.open(tmp_path) as run:
        assert run.ranks().num_rows == 6
    assert any("no data of 2 of 8 ranks (6-7)" in message for message in caplog.messages), caplog.messages
