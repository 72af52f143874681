//! Perfetto's TrackEvent, for `ui.perfetto.dev` and its trace processor. A sequence of packets for each rank, whose names are interned
//! in it and whose moments are told by how much later each is than the one before.

mod arguments;
mod fields;
mod tracks;

use std::io::Write;

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};

use self::arguments::{annotate_begin, annotate_lifetime, NAMES, TEXTS};
use self::fields::{clocks, defaults, event, interned, packet, PACKET};
use self::tracks::Tracks;
use crate::definitions::{Definitions, SiteDefinition};
use crate::event::EventKind;
use crate::limit::{Cost, CountingWriter};
use crate::proto::Bytes;
use crate::rank::RankEvents;
use crate::shown::MatchedMessage;
use crate::write::Writer;
use lapscope_trace::Direction;

/// Measured on applications' runs, see docs/timelines.md.
pub const COST: Cost = Cost { call: 52, request: 60 };

/// Bytes that are kept before they are written.
const PIECE: usize = 1 << 18;

/// Writes a trace.
pub struct Perfetto<W> {
    out: CountingWriter<W>,
    /// By site: number of its call's name.
    names: Vec<u32>,
}

impl<W: Write> Perfetto<W> {
    pub fn new(out: W) -> Perfetto<W> {
        Perfetto { out: CountingWriter::new(out), names: Vec::new() }
    }
}

impl<W: Write> Writer for Perfetto<W> {
    fn begin(&mut self, run: &Definitions) -> Result<()> {
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        for site in &run.sites {
            let next = numbers.len() as u32;
            self.names.push(*numbers.entry(&site.call.name).or_insert(next));
        }
        let mut bytes = Bytes::default();
        for (number, name) in run.nodes.iter().enumerate() {
            describe(&mut bytes, NODES_SEQUENCE, |track| tracks::node(track, number, name));
        }
        self.out.put(&bytes.0)
    }

    fn rank(&mut self, run: &Definitions, rank: &RankEvents<'_>) -> Result<()> {
        let mut sequence = Sequence {
            run,
            rank,
            names: &self.names,
            bytes: Bytes::default(),
            tracks: Tracks::for_rank(rank.place),
            number: rank.place as u64 + NODES_SEQUENCE + 1,
            at: 0,
            known: Interned::default(),
            pending: 0,
            sending: 0,
        };
        sequence.start();
        for piece in rank.events.chunks(1 << 12) {
            for event in piece {
                sequence.event(run.moment(event.at), event.what);
            }
            if sequence.bytes.0.len() > PIECE {
                self.out.put(&sequence.bytes.0)?;
                sequence.bytes.0.clear();
            }
        }
        self.out.put(&sequence.bytes.0)
    }

    fn finish(&mut self, _: &Definitions) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

/// Packets that are no rank's.
const NODES_SEQUENCE: u64 = 1;

/// Writes a packet that describes a track.
fn describe(bytes: &mut Bytes, sequence: u64, fill: impl FnOnce(&mut Bytes)) {
    bytes.nest(PACKET, |packet| {
        packet.uint(packet::SEQUENCE_ID, sequence);
        packet.nest(packet::TRACK_DESCRIPTOR, fill);
    });
}

/// What a sequence has interned: numbers are the same in all sequences, and each says those that it uses.
#[derive(Default)]
struct Interned {
    names: FxHashSet<u32>,
    sites: FxHashSet<u32>,
}

/// What is interned with a packet.
#[derive(Default)]
struct New {
    /// Its number, and a site at which it is called.
    name: Option<(u32, u32)>,
    site: Option<u32>,
}

impl New {
    fn write(&self, data: &mut Bytes, run: &Definitions) {
        if let Some((number, site)) = self.name {
            let name = &run.sites[site as usize].call.name;
            intern(data, interned::EVENT_NAME, u64::from(number) + 1, name);
        }
        if let Some(number) = self.site {
            intern_site(data, number, &run.sites[number as usize]);
        }
    }
}

fn intern(data: &mut Bytes, field: u32, iid: u64, value: &str) {
    data.nest(field, |entry| {
        entry.uint(interned::IID, iid);
        entry.text(interned::VALUE, value);
    });
}

/// Without a file its function stands with what is known of it.
fn intern_site(data: &mut Bytes, number: u32, site: &SiteDefinition) {
    let function = site.function.as_ref().filter(|_| site.file.is_some());
    data.nest(interned::SOURCE_LOCATION, |entry| {
        entry.uint(interned::IID, u64::from(number) + 1);
        if let Some(file) = &site.file {
            entry.text(interned::FILE, file);
        }
        if let Some(function) = function.or(site.name.as_ref()) {
            entry.text(interned::FUNCTION, function);
        }
        if let Some(line) = site.line {
            entry.uint(interned::LINE, line.into());
        }
    });
}

/// The lengths of time between packets of a sequence are counted from here on.
fn snapshot_clocks(snapshot: &mut Bytes, at: u64) {
    snapshot.nest(clocks::CLOCK, |clock| {
        clock.uint(clocks::ID, clocks::BOOTTIME);
        clock.uint(clocks::TIMESTAMP, at);
    });
    snapshot.nest(clocks::CLOCK, |clock| {
        clock.uint(clocks::ID, clocks::OF_SEQUENCE);
        clock.uint(clocks::TIMESTAMP, at);
        clock.uint(clocks::IS_INCREMENTAL, 1);
    });
}

/// The message that an endpoint is that end of.
fn message(rank: &RankEvents<'_>, endpoint: u32, end: Direction) -> Option<MatchedMessage> {
    let is_end = rank.operation_of(endpoint).direction == end;
    let half = is_end.then(|| rank.trace.half(rank.place, endpoint as usize))?;
    rank.shown.message(rank.trace, &half)
}

/// Where what ends is a receive, its message ends.
fn receive(event: &mut Bytes, rank: &RankEvents<'_>, endpoint: u32) {
    if let Some(message) = message(rank, endpoint, Direction::Receive) {
        let field = if message.is_backwards { event::FLOW } else { event::LAST_FLOW };
        event.fixed64(field, message.id);
    }
}

/// A rank's packets.
struct Sequence<'a> {
    run: &'a Definitions,
    rank: &'a RankEvents<'a>,
    names: &'a [u32],
    bytes: Bytes,
    tracks: Tracks,
    number: u64,
    /// The timestamp of the last packet.
    at: u64,
    known: Interned,
    pending: i64,
    sending: i64,
}

impl Sequence<'_> {
    fn start(&mut self) {
        let first = self.rank.events.first();
        self.at = first.map_or(0, |event| self.run.moment(event.at));
        let (at, tracks, number) = (self.at, self.tracks, self.number);
        self.bytes.nest(PACKET, |packet| {
            packet.uint(packet::SEQUENCE_ID, number);
            packet.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
            packet.uint(packet::FIRST_ON_SEQUENCE, 1);
            packet.nest(packet::CLOCK_SNAPSHOT, |snapshot| snapshot_clocks(snapshot, at));
            packet.nest(packet::DEFAULTS, |defaults| {
                defaults.uint(defaults::TIMESTAMP_CLOCK_ID, clocks::OF_SEQUENCE);
                defaults.nest(defaults::TRACK_EVENT, |event| {
                    event.uint(event::TRACK, tracks.thread(0));
                    event.uint(event::COUNTER_TRACKS, tracks.pending());
                    event.uint(event::COUNTER_TRACKS, tracks.bytes());
                });
            });
            packet.nest(packet::INTERNED_DATA, |data| {
                for (iid, name) in (1..).zip(NAMES) {
                    intern(data, interned::ANNOTATION_NAME, iid, name);
                }
                for (iid, text) in (1..).zip(TEXTS) {
                    intern(data, interned::ANNOTATION_TEXT, iid, text);
                }
            });
        });
        self.describe_tracks();
    }

    fn describe_tracks(&mut self) {
        let Sequence { run, rank, number, .. } = *self;
        let place = rank.place;
        let bytes = &mut self.bytes;
        for thread in 0..rank.rank().threads.count() as u16 {
            describe(bytes, number, |track| tracks::thread(track, run, place, thread));
        }
        for of_steps in [true, false] {
            if rank.regions.iter().any(|region| region.is_step == of_steps) {
                describe(bytes, number, |track| tracks::regions(track, place, of_steps));
            }
        }
        for (number_of_lane, lane) in (0..).zip(&rank.rank().devices.lanes) {
            describe(bytes, number, |track| tracks::device(track, place, number_of_lane, lane));
        }
        if rank.lanes == 0 {
            return;
        }
        for lane in 0..rank.lanes {
            describe(bytes, number, |track| tracks::lane(track, place, lane));
        }
        for counter in tracks::counters(place) {
            describe(bytes, number, |track| tracks::counter(track, place, counter));
        }
    }

    #[inline]
    fn event(&mut self, at: u64, what: EventKind) {
        match what {
            EventKind::Enter(visit) => self.enter(at, visit),
            EventKind::Leave(visit) => self.leave(at, visit),
            EventKind::Posted(lifetime) => self.lifetime(at, lifetime, true),
            EventKind::Ended(lifetime) => self.lifetime(at, lifetime, false),
            EventKind::RegionBegins(region) => self.region(at, region, true),
            EventKind::RegionEnds(region) => self.region(at, region, false),
            EventKind::DeviceBegins(span) => self.device(at, span, true),
            EventKind::DeviceEnds(span) => self.device(at, span, false),
        }
    }

    fn enter(&mut self, at: u64, index: u32) {
        let (rank, run) = (self.rank, self.run);
        let visit = rank.visits[index as usize];
        let site = rank.operation(visit.operation).site;
        let name = self.names[site.number() as usize];
        let track = self.own_track(visit.thread);
        let new = self.news(site.number(), true);
        self.packet(at, new, |event| {
            event.uint(event::TYPE, event::BEGIN);
            event.uint(event::NAME_IID, u64::from(name) + 1);
            event.uint(event::SOURCE_LOCATION_IID, u64::from(site.number()) + 1);
            if let Some(track) = track {
                event.uint(event::TRACK, track);
            }
            for &endpoint in rank.began(index) {
                if let Some(message) = message(rank, endpoint, Direction::Send) {
                    let field = if message.is_backwards { event::LAST_FLOW } else { event::FLOW };
                    event.fixed64(field, message.id);
                }
            }
            annotate_begin(event, run, rank, index);
        });
    }

    fn leave(&mut self, at: u64, index: u32) {
        let rank = self.rank;
        let visit = rank.visits[index as usize];
        let track = self.own_track(visit.thread);
        self.packet(at, New::default(), |event| {
            event.uint(event::TYPE, event::END);
            if let Some(track) = track {
                event.uint(event::TRACK, track);
            }
            let blocked = rank.began(index).iter().filter(|&&it| !rank.operation_of(it).is_request);
            for &endpoint in rank.ended(index).iter().chain(blocked) {
                receive(event, rank, endpoint);
            }
        });
    }

    fn lifetime(&mut self, at: u64, index: u32, is_begin: bool) {
        let (rank, run) = (self.rank, self.run);
        let lifetime = rank.lifetimes[index as usize];
        let operation = rank.operation_of(lifetime.endpoint);
        let track = self.tracks.lane(lifetime.lane);
        let step = if is_begin { 1 } else { -1 };
        self.pending += step;
        let sends = operation.direction == Direction::Send;
        if sends {
            self.sending += step * operation.bytes.0 as i64;
        }
        let (pending, sending) = (self.pending, self.sending);
        let name = self.names[operation.site.number() as usize];
        let site = operation.site.number();
        let new = if is_begin { self.news(site, false) } else { New::default() };
        self.packet(at, new, |event| {
            event.uint(event::TYPE, if is_begin { event::BEGIN } else { event::END });
            event.uint(event::TRACK, track);
            event.int(event::COUNTER_VALUES, pending);
            if sends {
                event.int(event::COUNTER_VALUES, sending);
            }
            if is_begin {
                event.uint(event::NAME_IID, u64::from(name) + 1);
                annotate_lifetime(event, run, rank, &lifetime);
            }
        });
    }

    fn region(&mut self, at: u64, index: u32, is_begin: bool) {
        let region = &self.rank.regions[index as usize];
        let track = self.tracks.regions(region.is_step);
        self.packet(at, New::default(), |event| {
            event.uint(event::TYPE, if is_begin { event::BEGIN } else { event::END });
            event.uint(event::TRACK, track);
            if is_begin {
                event.text(event::NAME, &region.name);
            }
        });
    }

    fn device(&mut self, at: u64, index: u32, is_begin: bool) {
        let rank = self.rank;
        let lane = rank.device_spans[index as usize].lane;
        let work = rank.rank().devices.lanes[lane as usize].work;
        let track = self.tracks.device(lane);
        self.packet(at, New::default(), |event| {
            event.uint(event::TYPE, if is_begin { event::BEGIN } else { event::END });
            event.uint(event::TRACK, track);
            if is_begin {
                event.text(event::NAME, work.in_words());
            }
        });
    }

    /// `None`: the one that events are on unless they say otherwise.
    fn own_track(&self, thread: u16) -> Option<u64> {
        (thread > 0).then(|| self.tracks.thread(thread))
    }

    /// What has to be interned for the next event, which names the call of a site, and perhaps the site.
    fn news(&mut self, site: u32, with_site: bool) -> New {
        let name = self.names[site as usize];
        New {
            name: self.known.names.insert(name).then_some((name, site)),
            site: Some(site).filter(|&site| with_site && self.known.sites.insert(site)),
        }
    }

    #[inline]
    fn packet(&mut self, at: u64, new: New, fill: impl FnOnce(&mut Bytes)) {
        let later = at.saturating_sub(self.at);
        self.at += later;
        let (number, run) = (self.number, self.run);
        self.bytes.nest(PACKET, |packet| {
            packet.uint(packet::TIMESTAMP, later);
            packet.uint(packet::SEQUENCE_ID, number);
            packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
            if new.name.is_some() || new.site.is_some() {
                packet.nest(packet::INTERNED_DATA, |data| new.write(data, run));
            }
            packet.nest(packet::TRACK_EVENT, fill);
        });
    }
}
