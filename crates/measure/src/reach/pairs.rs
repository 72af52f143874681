//! Sites that send and sites that receive from them, by matched messages: how much of each transfer the time available could
//! hide ([SA06]), and which networks the program would tolerate.
//!
//! Normalised overlap is available time over reference time. A side that was not measured has at least nothing and at
//! most anything, so that a sum with it is a lower bound.

mod cells;
mod networks;
mod sums;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use self::cells::{Collected, PairCell, PairKey};
pub use self::networks::{Networks, Predicted, SmallCollectives, LOSS};
pub use self::sums::{Granularities, SizeRow, Sum};
use super::available::{hidden_behind_consumption, Available, Profile, Transfer};
use super::bounds::ConfidenceBounds;
use super::network::Network;
use super::pattern::{Pattern, Votes};
use super::site::SiteReach;
use crate::reference::{Estimate, Reference};
use lapscope_data::model::Side;
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::watched::words::WORD_BYTES;
use lapscope_trace::{Locality, Trace};

/// Buffers that are smaller or larger by more than this factor may be filled and used otherwise.
const SIMILAR: f64 = 4.0;

/// When the data of sites are ready and needed, by the sizes of their buffers.
#[derive(Debug, Default)]
pub struct Profiles(FxHashMap<(SiteId, Side), Vec<SizedProfile>>);

/// The profile of the buffers of a site from a smallest to a largest size in bytes.
#[derive(Debug, Clone, Copy)]
struct SizedProfile {
    least: u64,
    most: u64,
    profile: Profile,
}

impl Profiles {
    /// Site, side, smallest and largest buffer, and what is known of these.
    pub fn new(of: impl IntoIterator<Item = (SiteId, Side, (u64, u64), Profile)>) -> Profiles {
        let mut profiles = Profiles::default();
        for (site, side, (least, most), profile) in of {
            profiles.0.entry((site, side)).or_default().push(SizedProfile { least, most, profile });
        }
        profiles
    }

    /// Takes sites of which enough was seen.
    pub fn from_sites(sites: &[SiteReach]) -> Profiles {
        Profiles::new(sites.iter().filter_map(|site| {
            let bytes = (site.min_bytes, site.max_bytes);
            Some((site.place.id, site.side, bytes, Profile::from_site(site)?))
        }))
    }

    fn has(&self, site: SiteId, side: Side) -> bool {
        self.0.contains_key(&(site, side))
    }

    /// The profile of the buffers whose size is nearest, if it is near.
    fn get(&self, site: SiteId, side: Side, bytes: u64) -> Option<Profile> {
        let distance = |&SizedProfile { least, most, .. }: &SizedProfile| {
            let ratio = |a: u64, b: u64| a.max(1) as f64 / b.max(1) as f64;
            ratio(least, bytes).max(ratio(bytes, most)).max(1.0)
        };
        let all = self.0.get(&(site, side))?.iter();
        let nearest = all.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        (distance(nearest) <= SIMILAR).then_some(nearest.profile)
    }
}

/// Where one end of messages is.
#[derive(Debug, Clone, Serialize)]
pub struct PairEnd {
    pub call: String,
    pub site: Option<FrameName>,
    /// Whether its buffers were watched often enough.
    pub is_measured: bool,
}

/// How long one message takes with nothing in between, nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TransferTime {
    pub low: i64,
    pub estimate: i64,
    pub high: i64,
}

/// Share of the data behind the first that travels while earlier ones are consumed, in a pipelined program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LaterHidden {
    pub low: f64,
    pub high: f64,
}

/// Messages of similar size from one site to another.
#[derive(Debug, Serialize)]
pub struct PairRow {
    pub send: PairEnd,
    pub receive: PairEnd,
    pub locality: Locality,
    pub from_bytes: u64,
    /// The first size that is too large.
    pub below_bytes: u64,
    pub messages: u64,
    pub bytes: u64,
    pub pattern: Pattern,
    /// Messages of these sites, of all sizes, that tell.
    pub votes: Votes,
    /// Time available of one message.
    pub available_ns: Available,
    /// Transfer time of one message of their mean size; `None`: nothing near it was measured.
    pub transfer_ns: Option<TransferTime>,
    /// Available time of the worst datum over transfer time; from 1 on, all of the transfer can be hidden.
    pub normalized_overlap: Option<Granularities<ConfidenceBounds>>,
    /// `None` where it is not pipelined, or where T_P or T_C is not known.
    pub later_hidden: Option<LaterHidden>,
}

/// All pairs of sites of which a side was measured. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct Pairs {
    /// Those whose transfers take longest first.
    pub rows: Vec<PairRow>,
    /// Rows before they were cut to those that were asked for.
    pub pair_count: usize,
    /// Messages between different ranks, matched: all of the run's, and of the pairs.
    pub run_messages: u64,
    pub run_bytes: u64,
    pub totals: Sum,
    pub sizes: Vec<SizeRow>,
    /// `None` where no message or no computation is known.
    pub networks: Option<Networks>,
}

/// A cell with what follows for it.
struct Judged {
    key: PairKey,
    cell: PairCell,
    votes: Votes,
    send: Option<Profile>,
    receive: Option<Profile>,
    available: Available,
    transfer: Option<Estimate>,
}

impl Pairs {
    /// `None` where no side of any matched message was measured. `asked`: networks to be asked besides those of the tables.
    pub fn build(
        trace: &Trace,
        reference: &Reference,
        profiles: &Profiles,
        asked: &[Network],
        names: &mut dyn NameFrames,
    ) -> Option<Pairs> {
        let collected = Collected::collect(trace, |site, side| profiles.has(site, side));
        let mut judged = judge(&collected, reference, profiles);
        if judged.is_empty() {
            return None;
        }
        let all = |of: &Judged| {
            let one = of.transfer.map_or(0, |transfer| transfer.ns);
            one.saturating_mul(of.cell.messages as i64)
        };
        judged.sort_by(|a, b| all(b).cmp(&all(a)).then_with(|| a.key.cmp(&b.key)));
        let mut name = |site: SiteId, is_measured: bool| {
            let frame = trace.places.site(site).frame;
            let call = trace.places.call(site).name.clone();
            let site = frame.and_then(|frame| names.name(frame).into_iter().next());
            PairEnd { call, site, is_measured }
        };
        let gap = |locality| reference.transfer(locality, 0).map(|time| time.ns as f64);
        Some(Pairs {
            rows: judged
                .iter()
                .map(|of| {
                    let send = name(of.key.send, of.send.is_some());
                    let receive = name(of.key.receive, of.receive.is_some());
                    of.row(send, receive, gap(of.key.locality))
                })
                .collect(),
            pair_count: judged.len(),
            run_messages: collected.messages,
            run_bytes: collected.bytes,
            totals: Sum::add_up(judged.iter()),
            sizes: sizes(&judged),
            networks: Networks::evaluate(trace, &collected, &judged, asked),
        })
    }
}

/// What the messages of a run tell of each two sites that communicate, whether their buffers were watched or not.
pub fn patterns(trace: &Trace) -> BTreeMap<(SiteId, SiteId), Votes> {
    Collected::collect(trace, |_, _| true).votes().into_iter().collect()
}

fn judge(collected: &Collected<'_>, reference: &Reference, profiles: &Profiles) -> Vec<Judged> {
    let votes = collected.votes();
    let judge = |(&key, &cell): (&PairKey, &PairCell)| {
        let bytes = cell.mean_bytes();
        let send = profiles.get(key.send, Side::Send, bytes);
        let receive = profiles.get(key.receive, Side::Receive, bytes);
        if send.is_none() && receive.is_none() {
            return None;
        }
        let votes = votes.get(&(key.send, key.receive)).copied().unwrap_or_default();
        let of = transfer_of(send, receive, bytes);
        let available = match votes.pattern() {
            Pattern::Concurrent => Available::concurrent(&of),
            Pattern::Pipelined | Pattern::Dependent => Available::pipelined(&of),
            Pattern::Mixed | Pattern::Unknown => Available::either(&of),
        };
        let transfer = reference.transfer(key.locality, bytes);
        Some(Judged { key, cell, votes, send, receive, available, transfer })
    };
    collected.cells.iter().filter_map(judge).collect()
}

fn transfer_of(send: Option<Profile>, receive: Option<Profile>, bytes: u64) -> Transfer {
    Transfer {
        send: send.unwrap_or(Profile::UNKNOWN),
        receive: receive.unwrap_or(Profile::UNKNOWN),
        words: bytes.div_ceil(WORD_BYTES).max(1),
    }
}

impl Judged {
    fn row(&self, send: PairEnd, receive: PairEnd, gap: Option<f64>) -> PairRow {
        let class = self.key.size_class;
        let pattern = self.votes.pattern();
        let transfer = self.transfer;
        PairRow {
            send,
            receive,
            locality: self.key.locality,
            from_bytes: if class == 0 { 0 } else { 1 << (class - 1) },
            below_bytes: 1u64.checked_shl(class.into()).unwrap_or(u64::MAX),
            messages: self.cell.messages,
            bytes: self.cell.bytes,
            pattern,
            votes: self.votes,
            available_ns: self.available,
            transfer_ns: transfer.map(|time| TransferTime {
                low: time.low_ns,
                estimate: time.ns,
                high: time.high_ns,
            }),
            normalized_overlap: transfer.map(|transfer| {
                Granularities::worst(&self.available).map(|worst| normalized(worst, &transfer))
            }),
            later_hidden: match pattern {
                Pattern::Pipelined | Pattern::Dependent => self.later_hidden(gap),
                _ => None,
            },
        }
    }

    /// `gap`: how long a message of nothing takes, which is more than the least time between two messages; that lies between
    /// nothing and this.
    fn later_hidden(&self, gap: Option<f64>) -> Option<LaterHidden> {
        let (produce, consume) = (self.send?.word?, self.receive?.word?);
        let low = match (produce.high, gap) {
            (Some(produce), Some(gap)) => hidden_behind_consumption(produce, consume.low, gap),
            _ => 0.0,
        };
        let high = consume
            .high
            .map_or(1.0, |consume| hidden_behind_consumption(produce.low, consume, 0.0));
        Some(LaterHidden { low, high })
    }
}

fn normalized(worst: ConfidenceBounds, transfer: &Estimate) -> ConfidenceBounds {
    use super::network::normalized_overlap as of;
    ConfidenceBounds {
        low: of(worst.low, transfer.high_ns as f64),
        estimate: worst.estimate.map(|time| of(time, transfer.ns as f64)),
        high: worst
            .high
            .filter(|_| transfer.is_low_known())
            .map(|time| of(time, transfer.low_ns as f64)),
    }
}

fn sizes(judged: &[Judged]) -> Vec<SizeRow> {
    let mut classes: BTreeMap<u8, Vec<&Judged>> = BTreeMap::new();
    for of in judged {
        classes.entry(of.key.size_class).or_default().push(of);
    }
    let row = |(class, of): (u8, Vec<&Judged>)| SizeRow {
        from_bytes: if class == 0 { 0 } else { 1 << (class - 1) },
        below_bytes: 1u64.checked_shl(class.into()).unwrap_or(u64::MAX),
        sum: Sum::add_up(of.into_iter()),
    };
    classes.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests;
