"""The queries of docs/parquet.md, as they stand there, against what the command itself says."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import duckdb
import lapscope
import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "parquet.md"

Row = Dict[str, Any]


def blocks() -> Dict[str, Tuple[str, str]]:
    """By heading, the language and the text of each query of the document."""
    queries = DOCUMENT.read_text("utf-8").split("\n## Queries\n")[1]
    found = re.findall(r"^### (.*?)$.*?^```(\w+)\n(.*?)^```", queries, re.MULTILINE | re.DOTALL)
    return {heading: (language, text) for heading, language, text in found}


def ask(heading: str) -> List[Row]:
    """Runs a query in the working directory."""
    language, text = blocks()[heading]
    if language == "sql":
        with duckdb.connect() as connection:
            answer = connection.execute(text)
            names = [column[0] for column in answer.description]
            return [dict(zip(names, row)) for row in answer.fetchall()]
    names_of_block: Dict[str, Any] = {}
    exec(compile(text, heading, "exec"), names_of_block)
    answer = names_of_block["answer"]
    if heading.endswith("in Polars"):
        return list(answer.to_dicts())
    if heading.endswith("in Spark"):
        return [row.asDict() for row in answer.collect()]
    return list(answer.to_dict("records"))


@pytest.fixture(autouse=True)
def beside_tables(run: lapscope.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.tables.parent)


@pytest.fixture(scope="module")
def overlap(run: lapscope.Run) -> Dict[str, Any]:
    return run.overlap()


def pairs_of_nodes(run: lapscope.Run) -> Dict[Tuple[str, str], int]:
    """Messages from node to node, as the database has its sends."""
    sql = """SELECT f.host, t.host, count(*) AS messages FROM (
               SELECT rank, peer FROM requests WHERE kind = 'send'
               UNION ALL SELECT rank, peer FROM calls WHERE kind = 'send') s
             JOIN rank f ON f.rank = s.rank JOIN rank t ON t.rank = s.peer GROUP BY f.host, t.host"""
    lines = lapscope.Command().run("sql", run.path, sql, "--format", "csv").splitlines()[1:]
    cells = (line.split(",") for line in lines)
    return {(sender, receiver): int(messages) for sender, receiver, messages in cells}


def check_nodes(rows: List[Row], run: lapscope.Run, overlap: Dict[str, Any]) -> None:
    found = {(row["sender"], row["receiver"]): row["messages"] for row in rows}
    assert found == pairs_of_nodes(run)
    assert len(found) > 3
    late = [row["late_ns"] for row in rows]
    assert late == sorted(late, reverse=True)
    requests = [kind["exposed_late_partner_ns"] for kind in overlap["kinds"] if kind["kind"] == "recv"]
    blocking = [site["late_partner_ns"] for site in overlap["blocking"]["sites"] if site["kind"] == "recv"]
    assert sum(late) == sum(requests) + sum(blocking) > 0
    assert all((row["late"] > 0) == (row["late_ns"] > 0) for row in rows)
    assert 0 < sum(row["late"] for row in rows) < sum(found.values())


@pytest.mark.parametrize("engine", ["DuckDB", "Polars"])
def test_exposed_time_by_site_and_cause(engine: str, overlap: Dict[str, Any]) -> None:
    causes = ["late_partner", "no_remote_progress", "no_local_progress", "transfer", "no_processor"]

    def numbers(row: Row, prefix: str) -> Tuple[int, ...]:
        times = [row["exposed_ns"], *(row[f"{prefix}{cause}_ns"] for cause in causes)]
        return (row["requests"], *map(int, times))

    rows = ask(f"Exposed time by site and cause, in {engine}")
    found = sorted((row["call"], numbers(row, "")) for row in rows)
    assert found == sorted((site["call"], numbers(site, "exposed_")) for site in overlap["sites"])
    assert len(found) == 8


@pytest.mark.parametrize("engine", ["DuckDB", "Polars"])
def test_late_messages_by_pair_of_nodes(engine: str, run: lapscope.Run, overlap: Dict[str, Any]) -> None:
    check_nodes(ask(f"Late messages by pair of nodes, in {engine}"), run, overlap)


def test_sizes(overlap: Dict[str, Any]) -> None:
    rows = ask("Sizes of requests, in DuckDB")
    key = ("kind", "from_bytes", "requests", "bytes")
    expected = sorted(tuple(row[name] for name in key) for row in overlap["sizes"])
    assert sorted(tuple(row[name] for name in key) for row in rows) == expected
    assert len(expected) > 10
    shares = {(row["kind"], row["from_bytes"]): row for row in overlap["sizes"]}
    for row in rows:
        for share in {"achieved_low", "achieved_high"} & row.keys():
            wanted = shares[row["kind"], row["from_bytes"]][share]
            assert row[share] == pytest.approx(wanted), (share, row)


def test_who_waits_for_whom(overlap: Dict[str, Any]) -> None:
    rows = ask("Who waits for whom, in DuckDB")
    found = {(row["rank"], row["waited_for"]): row for row in rows}
    listed = [pair for pair in overlap["late_pairs"] if pair["late_partner_ns"] > rows[-1]["late_partner_ns"]]
    assert listed
    for pair in listed:
        assert found[pair["rank"], pair["waited_for"]]["late_partner_ns"] == pair["late_partner_ns"]


def test_a_step_in_pandas(run: lapscope.Run) -> None:
    rows = ask("A step of the run, in pandas")
    assert len(rows) == 100
    assert {row["rank"] for row in rows} == {0}
    begins = [row["post_begin_ns"] for row in rows]
    assert begins == sorted(begins)


@pytest.mark.skipif("LAPSCOPE_TEST_ALL" not in os.environ, reason="LEFT TO make check-all: queries in Spark")
@pytest.mark.filterwarnings("default")
def test_spark(run: lapscope.Run, overlap: Dict[str, Any]) -> None:
    if shutil.which("java") is None:
        pytest.skip("NOT TESTED: Spark, without Java")
    check_nodes(ask("Late messages by pair of nodes, in Spark"), run, overlap)


def test_every_query_is_asked() -> None:
    asked = Path(__file__).read_text("utf-8")
    for heading in blocks():
        title, _, engine = heading.rpartition(", in ")
        assert f"{title}, in " in asked and f'"{engine}"' in asked or heading in asked, heading


@pytest.fixture
def odd(path: Path, tmp_path: Path) -> Iterator[Path]:
    """Tables of the same run on hosts whose names readers might take for something else."""
    copy = tmp_path / "run"
    shutil.copytree(path, copy)
    for number, host in enumerate(["0017", "rack 2/ä=1", "1e3"] * 3):
        file = copy / f"rank-{number}.db"
        if file.exists():
            with sqlite3.connect(file) as database:
                database.execute("UPDATE rank SET host = ?", [host])
            database.close()
    with lapscope.open(copy, tables=tmp_path / "tables") as run:
        assert run.tables.parent == tmp_path
    yield tmp_path


def test_hosts_are_read_as_they_are(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(odd)
    hosts = {"0017", "rack 2/ä=1", "1e3"}
    with lapscope.open("run", tables="tables") as run:
        assert set(run.messages(columns=["node"])["node"].to_pylist()) == hosts
    for engine in ["DuckDB", "Polars"]:
        rows = ask(f"Late messages by pair of nodes, in {engine}")
        assert {row["sender"] for row in rows} == hosts == {row["receiver"] for row in rows}
