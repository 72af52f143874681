//! Matched messages by pair of sites, size and locality.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::pattern::{TimedMessage, Traffic, Votes};
use lapscope_data::model::Side;
use lapscope_data::places::SiteId;
use lapscope_trace::{Direction, Half, Locality, Trace};

/// What messages have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairKey {
    pub send: SiteId,
    pub receive: SiteId,
    pub size_class: u8,
    pub locality: Locality,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct PairCell {
    pub messages: u64,
    pub bytes: u64,
}

impl PairCell {
    pub fn mean_bytes(&self) -> u64 {
        self.bytes / self.messages.max(1)
    }
}

/// What is wanted of a run's messages between different ranks.
#[derive(Debug, Default)]
pub struct Collected<'t> {
    /// All.
    pub messages: u64,
    pub bytes: u64,
    /// Cells of pairs of which a side is wanted.
    pub cells: BTreeMap<PairKey, PairCell>,
    traffic: Traffic<'t>,
    /// [`TimedMessage::pair`] indexes into this.
    pairs: Vec<(SiteId, SiteId)>,
}

impl<'t> Collected<'t> {
    pub fn collect(trace: &'t Trace, is_wanted: impl Fn(SiteId, Side) -> bool) -> Collected<'t> {
        let mut collected = Collected::default();
        let mut numbers: FxHashMap<(SiteId, SiteId), u32> = FxHashMap::default();
        for rank in 0..trace.ranks.len() {
            for send in trace.halves(rank).filter(|half| half.operation.is_send()) {
                let Some(receive) = trace.partner(&send).filter(|other| other.rank != rank) else {
                    continue;
                };
                collected.count(trace, &send, &receive, &is_wanted);
                let Some(received) = receive.completion_end else { continue };
                let sites = (send.operation.site, receive.operation.site);
                let pair = *numbers.entry(sites).or_insert_with(|| {
                    collected.pairs.push(sites);
                    (collected.pairs.len() - 1) as u32
                });
                collected.traffic.messages.push(TimedMessage {
                    source: rank as u32,
                    destination: receive.rank as u32,
                    sent: send.post_begin,
                    received,
                    pair,
                });
            }
        }
        collected.traffic.messages.sort_by_key(|message| message.sent);
        if !collected.cells.is_empty() {
            collected.traffic.collectives = collectives(trace);
            collected.traffic.presence = trace.ranks.iter().map(|rank| &rank.presence).collect();
        }
        collected
    }

    fn count(
        &mut self,
        trace: &Trace,
        send: &Half<'_>,
        receive: &Half<'_>,
        is_wanted: impl Fn(SiteId, Side) -> bool,
    ) {
        let bytes = send.bytes();
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes.0);
        let key = PairKey {
            send: send.operation.site,
            receive: receive.operation.site,
            size_class: bytes.size_class(),
            locality: trace.locality(send.rank, receive.rank),
        };
        if is_wanted(key.send, Side::Send) || is_wanted(key.receive, Side::Receive) {
            let cell = self.cells.entry(key).or_default();
            cell.messages += 1;
            cell.bytes = cell.bytes.saturating_add(bytes.0);
        }
    }

    /// What messages tell of each pair of sites. Asks for a site's pairs only where one of them has a cell.
    pub fn votes(&self) -> FxHashMap<(SiteId, SiteId), Votes> {
        if self.cells.is_empty() {
            return FxHashMap::default();
        }
        let votes = self.traffic.votes();
        votes.into_iter().map(|(pair, votes)| (self.pairs[pair as usize], votes)).collect()
    }
}

/// When each rank began its collectives of several ranks.
fn collectives(trace: &Trace) -> Vec<Vec<i64>> {
    let of = |rank: usize| {
        let is_collective = |half: &Half<'_>| {
            half.operation.direction == Direction::Collective && half.operation.comm_size > 1
        };
        let mut begins: Vec<i64> =
            trace.halves(rank).filter(is_collective).map(|half| half.post_begin).collect();
        begins.sort_unstable();
        begins
    };
    (0..trace.ranks.len()).map(of).collect()
}
