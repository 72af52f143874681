"""A Perfetto trace taken apart with the published schema: slices, counters and flows, with names and moments resolved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import perfetto.protos.perfetto.trace.perfetto_trace_pb2 as schema

CLEARED, NEEDED = 1, 2


@dataclass
class Slice:
    track: int
    name: str
    begin: int
    end: Optional[int] = None
    file: str = ""
    line: int = 0
    function: str = ""
    arguments: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Sequence:
    """What packets of one sequence refer to."""

    clock: int = 0
    track: int = 0
    counters: List[int] = field(default_factory=list)
    names: Dict[Tuple[str, int], Any] = field(default_factory=dict)


class Tracks:
    """Everything of a file."""

    def __init__(self, path: Path) -> None:
        trace = schema.Trace()
        trace.ParseFromString(path.read_bytes())
        self.described: Dict[int, Any] = {}
        self.slices: List[Slice] = []
        self.counters: Dict[int, List[Tuple[int, int]]] = defaultdict(list)
        #: By identity: the slices at which a flow begins and ends.
        self.flows: Dict[int, Tuple[List[Slice], List[Slice]]] = defaultdict(lambda: ([], []))
        self._open: Dict[int, List[Slice]] = defaultdict(list)
        self._sequences: Dict[int, Sequence] = {}
        for packet in trace.packet:
            self._take(packet)
        unended = [slice for slices in self._open.values() for slice in slices]
        assert not unended, unended

    def on(self, kind: str) -> List[Slice]:
        """Of threads, or of tracks of that name."""
        return [slice for slice in self.slices if self.kind(slice.track) == kind]

    def kind(self, track: int) -> str:
        described = self.described[track]
        return "thread" if described.HasField("thread") else str(described.name)

    def _take(self, packet: Any) -> None:
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            assert described.uuid not in self.described, described
            assert not described.HasField("parent_uuid") or described.parent_uuid in self.described
            self.described[described.uuid] = described
            return
        number = packet.trusted_packet_sequence_id
        if packet.sequence_flags & CLEARED:
            assert number not in self._sequences
            self._sequences[number] = self._begin(packet)
        sequence = self._sequences[number]
        self._intern(sequence, packet.interned_data)
        if packet.HasField("track_event"):
            assert packet.sequence_flags & NEEDED
            sequence.clock += packet.timestamp
            self._event(sequence, packet.track_event)

    def _begin(self, packet: Any) -> Sequence:
        clocks = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
        own = packet.trace_packet_defaults.timestamp_clock_id
        assert clocks[own].is_incremental and clocks[own].timestamp == clocks[6].timestamp
        defaults = packet.trace_packet_defaults.track_event_defaults
        return Sequence(clocks[own].timestamp, defaults.track_uuid, list(defaults.extra_counter_track_uuids))

    def _intern(self, sequence: Sequence, data: Any) -> None:
        kinds = ["event_names", "debug_annotation_names", "source_locations", "debug_annotation_string_values"]
        for kind in kinds:
            for entry in getattr(data, kind):
                assert (kind, entry.iid) not in sequence.names
                sequence.names[(kind, entry.iid)] = entry

    def _event(self, sequence: Sequence, event: Any) -> None:
        track = event.track_uuid or sequence.track
        for counter, value in zip(sequence.counters, event.extra_counter_values):
            self.counters[counter].append((sequence.clock, value))
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            slice = self._slice(sequence, track, event)
            self._open[track].append(slice)
            self.slices.append(slice)
        else:
            assert event.type == schema.TrackEvent.TYPE_SLICE_END
            slice = self._open[track].pop()
            slice.end = sequence.clock
        for begin in event.flow_ids:
            self.flows[begin][0].append(slice)
        for end in event.terminating_flow_ids:
            self.flows[end][1].append(slice)

    def _slice(self, sequence: Sequence, track: int, event: Any) -> Slice:
        names = sequence.names
        name = event.name or names[("event_names", event.name_iid)].name
        slice = Slice(track, name, sequence.clock)
        if event.source_location_iid:
            place = names[("source_locations", event.source_location_iid)]
            slice.file, slice.line, slice.function = place.file_name, place.line_number, place.function_name
        for annotation in event.debug_annotations:
            name = names[("debug_annotation_names", annotation.name_iid)].name
            value = getattr(annotation, annotation.WhichOneof("value"))
            if annotation.HasField("string_value_iid"):
                value = names[("debug_annotation_string_values", value)].str.decode()
            slice.arguments[name] = value
        return slice
