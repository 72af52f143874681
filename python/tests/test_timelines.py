"""What is exported for viewers, read by others than those who wrote it: with Perfetto's schema, by OTF2's readers, as JSON."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import lapscope
import otf2
import pytest
from tracks import Tracks

#: Rows of calls, and calls that posted requests.
CALLS = """SELECT call, count(*) FROM (SELECT call FROM calls UNION ALL SELECT call FROM
    (SELECT DISTINCT rank, thread, call, post_begin_ns FROM requests)) GROUP BY call"""


def export(directory: Path, run: Path, what: str, *options: str) -> Path:
    made = directory / "made"
    lapscope.Command().run("export", what, run, "-o", made, *options)
    return made


def by_call(path: Path, sql: str) -> Dict[str, int]:
    rows = lapscope.Command().run("sql", path, sql, "--format", "csv").splitlines()[1:]
    return {call: int(count) for call, count in (row.split(",") for row in rows)}


@pytest.fixture(scope="module")
def tracks(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Tracks:
    return Tracks(export(tmp_path_factory.mktemp("perfetto"), path, "perfetto"))


def test_perfetto_has_the_calls_and_requests_of_the_database(tracks: Tracks, path: Path) -> None:
    assert Counter(slice.name for slice in tracks.on("thread")) == by_call(path, CALLS)
    requests = "SELECT call, count(*) FROM requests GROUP BY call"
    assert Counter(slice.name for slice in tracks.on("requests")) == by_call(path, requests)


def test_each_message_is_one_flow(tracks: Tracks, run: lapscope.Run) -> None:
    messages = Counter(
        (row["bytes"], row["send_post_begin_ns"], row["receive_completion_end_ns"])
        for row in run.messages().to_pylist()
    )
    ends = [begins + ends for begins, ends in tracks.flows.values()]
    assert all(len(pair) == 2 for pair in ends)
    assert all(begin.name.endswith("end") for begin, _ in ends), "MPI_Isend, MPI_Send"
    flows = Counter((sent(tracks, begin), begin.begin, end.end) for begin, end in ends)
    assert len(ends) == messages.total() == run.overlap()["matching"]["messages"] > 0
    origin = min(slice.begin for slice in tracks.slices) - min(row[1] for row in messages)
    assert flows == Counter({(bytes, begin + origin, end + origin): n for (bytes, begin, end), n in messages.items()})


def sent(tracks: Tracks, call: Any) -> Any:
    """Bytes of a send: what a request communicates, its lifetime tells."""
    if "bytes" in call.arguments:
        return call.arguments["bytes"]
    parents = [slice for slice in tracks.on("requests") if slice.begin == call.begin and slice.name == call.name]
    of_thread = [slice for slice in parents if tracks.described[slice.track].parent_uuid == call.track]
    assert len(of_thread) == 1
    return of_thread[0].arguments["bytes"]


def test_counters_and_lanes_add_up(tracks: Tracks) -> None:
    for slice in tracks.slices:
        assert slice.end is not None and slice.end >= slice.begin
    requests = tracks.on("requests")
    for track in {slice.track for slice in requests}:
        own = sorted((slice.begin, slice.end or 0) for slice in requests if slice.track == track)
        assert all(before[1] <= after[0] for before, after in zip(own, own[1:])), "one after the other"
    most = {track: max(value for _, value in values) for track, values in tracks.counters.items()}
    assert {value for values in tracks.counters.values() for value in [values[-1][1]]} == {0}
    lanes: Counter[int] = Counter()
    for track in {slice.track for slice in requests}:
        lanes[tracks.described[track].parent_uuid] += 1
    pending = {t: m for t, m in most.items() if tracks.described[t].name == "requests pending"}
    assert {tracks.described[t].parent_uuid: m for t, m in pending.items()} == lanes


def test_ranks_are_threads_of_their_nodes(tracks: Tracks, run: lapscope.Run) -> None:
    nodes = {u: d.process.process_name for u, d in tracks.described.items() if d.HasField("process")}
    found = {d.thread.thread_name: nodes[d.parent_uuid] for d in tracks.described.values() if d.HasField("thread")}
    assert found == {f"rank {row['rank']}": row["node"] for row in run.ranks().to_pylist()}


def test_chrome_has_the_same(path: Path, tmp_path: Path, run: lapscope.Run) -> None:
    events = json.loads(export(tmp_path, path, "chrome").read_text())["traceEvents"]
    assert Counter(event["name"] for event in events if event["ph"] == "X") == by_call(path, CALLS)
    requests = by_call(path, "SELECT call, count(*) FROM requests GROUP BY call")
    for phase in "be":
        assert Counter(event["name"] for event in events if event["ph"] == phase) == requests
    flows = {phase: [event["id"] for event in events if event["ph"] == phase] for phase in "sf"}
    assert sorted(flows["s"]) == sorted(set(flows["s"])) == sorted(flows["f"])
    assert len(flows["s"]) == run.messages().num_rows


@pytest.fixture(scope="module")
def archive(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return export(tmp_path_factory.mktemp("otf2"), path, "otf2") / "traces.otf2"
    except lapscope.RunError as error:
        if "libopen-trace-format2-10" not in str(error):
            raise
        pytest.skip("there is no libotf2 here")


def test_otf2_has_the_same(archive: Path, path: Path, run: lapscope.Run) -> None:
    calls: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    messages: Dict[str, List[Any]] = {"sent": [], "received": []}
    with otf2.reader.open(str(archive)) as trace:
        ranks = {location: number for number, location in enumerate(trace.definitions.locations)}
        for location, event in trace.events:
            kind = type(event).__name__
            kinds[kind] += 1
            if kind == "Enter":
                calls[event.region.name] += 1
            elif kind in ("MpiSend", "MpiIsend"):
                messages["sent"].append((ranks[location], event.receiver, event.msg_tag, event.msg_length))
            elif kind in ("MpiRecv", "MpiIrecv"):
                messages["received"].append((event.sender, ranks[location], event.msg_tag, event.msg_length))
    assert calls == by_call(path, CALLS)
    assert kinds["Leave"] == kinds["Enter"]
    assert kinds["MpiIsend"] == kinds["MpiIsendComplete"] and kinds["MpiIrecv"] == kinds["MpiIrecvRequest"]
    columns = ["source", "destination", "tag", "bytes"]
    expected = Counter(tuple(row[column] for column in columns) for row in run.messages().to_pylist())
    assert Counter(messages["sent"]) == Counter(messages["received"]) == expected
    assert kinds["MpiCollectiveBegin"] == kinds["MpiCollectiveEnd"] == calls["MPI_Allreduce"] > 0


def test_otf2_print_reads_it(archive: Path, path: Path) -> None:
    line = ["otf2-print", str(archive)]
    try:
        printed = subprocess.run(line, check=True, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no otf2-print here")
    assert printed.stderr == ""
    events = Counter(line.split(" ", 1)[0] for line in printed.stdout.splitlines())
    assert events["ENTER"] == events["LEAVE"] == sum(by_call(path, CALLS).values())
