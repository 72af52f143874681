//! Chrome's trace event format, which `chrome://tracing`, Speedscope, the Firefox profiler and others open: JSON, a line an event.

use std::io::Write;

use anyhow::Result;
use serde_json::{json, Value};

use crate::definitions::Definitions;
use crate::event::EventKind;
use crate::limit::{Cost, CountingWriter};
use crate::rank::RankEvents;
use crate::shown::MatchedMessage;
use crate::write::Writer;
use lapscope_trace::Direction;

/// Measured as that of Perfetto's.
pub const COST: Cost = Cost { call: 210, request: 470 };

/// Bytes that are kept before they are written.
const PIECE: usize = 1 << 18;

/// Writes a trace.
pub struct Chrome<W> {
    out: CountingWriter<W>,
    text: Vec<u8>,
    is_first: bool,
    /// By site: its call, and what tells where it is, as JSON.
    calls: Vec<String>,
    places: Vec<String>,
    /// By place: process and thread.
    heads: Vec<String>,
}

impl<W: Write> Chrome<W> {
    pub fn new(out: W) -> Chrome<W> {
        Chrome {
            out: CountingWriter::new(out),
            text: Vec::new(),
            is_first: true,
            calls: Vec::new(),
            places: Vec::new(),
            heads: Vec::new(),
        }
    }

    /// A further event, whose text, without braces, `fill` writes.
    fn event(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let before: &[u8] = if self.is_first { b"\n{" } else { b",\n{" };
        self.is_first = false;
        self.text.extend_from_slice(before);
        fill(&mut self.text);
        self.text.push(b'}');
    }

    /// What a process or thread is called, and where viewers put it.
    fn metadata(&mut self, what: &str, (process, thread): (usize, usize), arguments: &Value) {
        self.event(|text| {
            put(
                text,
                format_args!(
                    r#""ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{arguments}"#
                ),
            );
        });
    }

    fn spill(&mut self) -> Result<()> {
        self.out.put(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Nothing fails that is written into memory.
fn put(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("memory");
}

/// A moment in nanoseconds, written as the microseconds that the format counts in.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

impl<W: Write> Writer for Chrome<W> {
    fn begin(&mut self, run: &Definitions) -> Result<()> {
        for site in &run.sites {
            self.calls.push(json!(site.call.name).to_string());
            let place = match (&site.file, site.line) {
                (Some(file), Some(line)) => Some(format!("{file}:{line}")),
                _ => None,
            };
            let place = place.or_else(|| site.name.clone());
            self.places.push(place.map_or_else(|| "null".into(), |place| json!(place).to_string()));
        }
        for (place, rank) in run.ranks.iter().enumerate() {
            // numbers of processes and threads are apart
            self.heads.push(format!(r#""pid":{},"tid":{}"#, 1_000_000_000 + rank.node, place + 1));
        }
        self.text.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"otherData\":");
        let about = json!({ "command": run.command, "written_by": "lapscope" });
        put(&mut self.text, format_args!("{about},\n\"traceEvents\":["));
        for (number, name) in run.nodes.iter().enumerate() {
            let process = 1_000_000_000 + number;
            self.metadata("process_name", (process, 0), &json!({ "name": name }));
            self.metadata("process_sort_index", (process, 0), &json!({ "sort_index": number }));
        }
        self.spill()
    }

    fn rank(&mut self, run: &Definitions, rank: &RankEvents<'_>) -> Result<()> {
        let process = 1_000_000_000 + run.ranks[rank.place].node as usize;
        for thread in 0..rank.rank().threads.count() {
            let more = if thread > 0 { format!(", thread {thread}") } else { String::new() };
            let name = format!("{}{more}", run.ranks[rank.place].name);
            let number = rank.place + 1 + thread * run.ranks.len();
            self.metadata("thread_name", (process, number), &json!({ "name": name }));
            let sort = json!({ "sort_index": number });
            self.metadata("thread_sort_index", (process, number), &sort);
        }
        let mut pending = 0;
        for event in &rank.events {
            let at = Micros(run.moment(event.at));
            match event.what {
                EventKind::Enter(visit) => self.call(run, rank, visit),
                EventKind::Leave(visit) => self.arrivals(run, rank, visit, &at),
                EventKind::Posted(lifetime) => {
                    pending += 1;
                    self.lifetime(rank, lifetime, &at, ("b", pending));
                }
                EventKind::Ended(lifetime) => {
                    pending -= 1;
                    self.lifetime(rank, lifetime, &at, ("e", pending));
                }
                EventKind::RegionBegins(region) => self.region(rank, region, &at, "b"),
                EventKind::RegionEnds(region) => self.region(rank, region, &at, "e"),
                EventKind::DeviceBegins(span) => self.device(rank, span, &at, "b"),
                EventKind::DeviceEnds(span) => self.device(rank, span, &at, "e"),
            }
            if self.text.len() > PIECE {
                self.spill()?;
            }
        }
        self.spill()
    }

    fn finish(&mut self, _: &Definitions) -> Result<()> {
        self.text.extend_from_slice(b"\n]}\n");
        self.spill()?;
        Ok(self.out.flush()?)
    }
}

impl<W: Write> Chrome<W> {
    /// Process and thread of an event.
    fn head(&self, rank: &RankEvents<'_>, thread: u16) -> String {
        match thread {
            0 => self.heads[rank.place].clone(),
            _ => {
                let number = rank.place + 1 + usize::from(thread) * self.heads.len();
                let head = &self.heads[rank.place];
                let process = &head[..head.find(',').unwrap_or(head.len())];
                format!(r#"{process},"tid":{number}"#)
            }
        }
    }

    fn call(&mut self, run: &Definitions, rank: &RankEvents<'_>, index: u32) {
        let visit = rank.visits[index as usize];
        let site = rank.operation(visit.operation).site.number() as usize;
        let head = self.head(rank, visit.thread);
        let (at, end) = (run.moment(visit.begin), run.moment(visit.end));
        let (name, place) = (self.calls[site].clone(), self.places[site].clone());
        self.event(|text| {
            let (begin, duration) = (Micros(at), Micros(end - at));
            put(
                text,
                format_args!(
                    r#""ph":"X","cat":"mpi","name":{name},{head},"ts":{begin},"dur":{duration},"args":{{"at":{place}"#
                ),
            );
            for (number, &endpoint) in rank.began(index).iter().enumerate() {
                if !rank.operation_of(endpoint).is_request {
                    arguments(text, run, rank, endpoint, number > 0);
                }
            }
            if visit.completed > 0 {
                put(text, format_args!(r#","completed":{}"#, visit.completed));
            }
            if !visit.returned {
                put(text, format_args!(r#","returned":false"#));
            }
            text.push(b'}');
        });
        for &endpoint in rank.began(index) {
            self.flow(rank, endpoint, Direction::Send, (&head, &Micros(at)));
        }
    }

    /// Messages that a call received.
    fn arrivals(&mut self, run: &Definitions, rank: &RankEvents<'_>, index: u32, at: &Micros) {
        let visit = rank.visits[index as usize];
        let head = self.head(rank, visit.thread);
        // inside of the call, where viewers look for what it belongs to
        let inside = Micros(at.0.saturating_sub(1).max(run.moment(visit.begin)));
        let blocked = rank.began(index).iter().filter(|&&it| !rank.operation_of(it).is_request);
        for &endpoint in rank.ended(index).iter().chain(blocked) {
            self.flow(rank, endpoint, Direction::Receive, (&head, &inside));
        }
    }

    fn flow(
        &mut self,
        rank: &RankEvents<'_>,
        endpoint: u32,
        end: Direction,
        (head, at): (&str, &Micros),
    ) {
        if rank.operation_of(endpoint).direction != end {
            return;
        }
        let half = rank.trace.half(rank.place, endpoint as usize);
        let Some(MatchedMessage { id, is_backwards, .. }) = rank.shown.message(rank.trace, &half)
        else {
            return;
        };
        let is_begin = (end == Direction::Send) != is_backwards;
        let phase = if is_begin { r#""s""# } else { r#""f","bp":"e""# };
        self.event(|text| {
            put(
                text,
                format_args!(
                    r#""ph":{phase},"cat":"message","name":"message","id":"{id:#x}",{head},"ts":{at}"#
                ),
            );
        });
    }

    /// The begin or end of what the program marked.
    fn region(&mut self, rank: &RankEvents<'_>, index: u32, at: &Micros, phase: &str) {
        let name = json!(rank.regions[index as usize].name);
        self.named(rank, index, at, ("region", &name, phase));
    }

    /// The begin or end of a GPU's work.
    fn device(&mut self, rank: &RankEvents<'_>, index: u32, at: &Micros, phase: &str) {
        let lane = &rank.rank().devices.lanes[rank.device_spans[index as usize].lane as usize];
        let name = json!(lane.work.of_gpu(lane.device));
        self.named(rank, index, at, ("gpu", &name, phase));
    }

    /// The begin or end of what has a name and nothing else; `index` is its number among those of its category.
    fn named(
        &mut self,
        rank: &RankEvents<'_>,
        index: u32,
        at: &Micros,
        (category, name, phase): (&str, &Value, &str),
    ) {
        let head = self.heads[rank.place].clone();
        let id = ((rank.place as u64 + 1) << 32) | u64::from(index);
        self.event(|text| {
            put(
                text,
                format_args!(
                    r#""ph":"{phase}","cat":"{category}","name":{name},"id":"{id:#x}",{head},"ts":{at}"#
                ),
            );
        });
    }

    /// A request's begin or end, and how many are pending then.
    fn lifetime(
        &mut self,
        rank: &RankEvents<'_>,
        index: u32,
        at: &Micros,
        (phase, pending): (&str, i64),
    ) {
        let lifetime = rank.lifetimes[index as usize];
        let operation = rank.operation_of(lifetime.endpoint);
        let name = self.calls[operation.site.number() as usize].clone();
        let head = self.heads[rank.place].clone();
        let id = ((rank.place as u64 + 1) << 32) | u64::from(lifetime.endpoint);
        self.event(|text| {
            put(
                text,
                format_args!(
                    r#""ph":"{phase}","cat":"request","name":{name},"id":"{id:#x}",{head},"ts":{at}"#
                ),
            );
            if phase == "b" {
                put(text, format_args!(r#","args":{{"bytes":{}"#, operation.bytes.0));
                operation.tag.into_iter().for_each(|tag| put(text, format_args!(r#","tag":{tag}"#)));
                if lifetime.is_pending {
                    put(text, format_args!(r#","pending":true"#));
                }
                text.push(b'}');
            }
        });
        let rank_number = rank.place;
        self.event(|text| {
            put(
                text,
                format_args!(
                    r#""ph":"C","name":"requests pending, {rank_number}",{head},"ts":{at},"args":{{"requests":{pending}}}"#
                ),
            );
        });
    }
}

/// What a blocking call communicates; `is_second`: beside what it sends.
fn arguments(
    text: &mut Vec<u8>,
    run: &Definitions,
    rank: &RankEvents<'_>,
    endpoint: u32,
    is_second: bool,
) {
    let operation = rank.operation_of(endpoint);
    let before = if is_second { "received_" } else { "" };
    put(text, format_args!(r#","{before}bytes":{}"#, operation.bytes.0));
    if let Some(peer) = operation.peer {
        let what = if operation.direction == Direction::Collective { "root" } else { "peer" };
        put(text, format_args!(r#","{before}{what}":{}"#, run.ranks[peer as usize].number));
    }
    if let Some(tag) = operation.tag {
        put(text, format_args!(r#","{before}tag":{tag}"#));
    }
    if operation.direction == Direction::Collective {
        let half = rank.trace.half(rank.place, endpoint as usize);
        put(text, format_args!(r#","members":{}"#, operation.comm_size));
        if let Some((communicator, number)) = run.meeting(rank.trace, &half) {
            put(text, format_args!(r#","communicator":{communicator},"number":{number}"#));
        }
    }
}
