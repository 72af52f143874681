//! Calls that wait for a message and communicate nothing themselves: probes, and what waits until buffered sends were taken
//! (MPI_Buffer_detach).
//!
//! What a probe found is the message that is received next of the same communicator, source and tag (MPI-4.1 3.8.1); how long it
//! waited is told by when that had been sent. Of the probes of a loop that found nothing the sum of their times is recorded, for each
//! place. It is laid to the loops by how long each may have lasted: from the call before it until the message was sent.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::endpoint::NONE;
use super::operation::Direction;
use super::stats::in_proportion;
use super::{RankTrace, Trace, WAITING_LOOP};
use lapscope_data::model::{Kind, Mode};
use lapscope_data::places::SiteId;

/// A call that waited for a message of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageWait {
    /// Nanoseconds on the run's clock.
    pub begin: i64,
    pub duration: i64,
    pub operation: u32,
    /// Index into [`RankTrace::other_calls`], where these were read.
    pub number: u32,
    /// The endpoint of this rank whose message that is; [`NONE`]: not known.
    pub message: u32,
    /// How long the other end of the message had not come: of a call that blocks its own time, of a loop of probes what those took
    /// that found nothing.
    pub waited: i64,
}

/// Probes of one place that found nothing: how many, and what they took, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VainProbes {
    pub site: SiteId,
    pub count: u64,
    pub ns: i64,
}

impl MessageWait {
    fn end(&self) -> i64 {
        self.begin + self.duration
    }
}

impl Trace {
    /// Whether it is a probe that returns whatever is there: it ends a loop.
    pub fn is_look(&self, rank: usize, wait: &MessageWait) -> bool {
        let call = self.call_of(&self.ranks[rank].operations[wait.operation as usize]);
        call.blocking != call.name
    }

    /// Looks for what was waited for, and how long.
    pub(super) fn find_message_waits(&mut self) {
        for rank in 0..self.ranks.len() {
            let mut waits = std::mem::take(&mut self.ranks[rank].message_waits);
            if waits.is_empty() {
                continue;
            }
            let behind = receives(&self.ranks[rank], &waits);
            let buffered = self.buffered(rank);
            for wait in &mut waits {
                let operation = &self.ranks[rank].operations[wait.operation as usize];
                let message = match operation.kind {
                    Kind::Recv => self.found_by(rank, wait, &behind),
                    _ => self.taken_last(rank, wait, &buffered),
                };
                wait.message = message.unwrap_or(NONE);
            }
            self.lay_waits(rank, &mut waits);
            self.ranks[rank].message_waits = waits;
        }
    }

    /// The endpoint that received what a probe found; not one whose message was sent when the probe had returned.
    fn found_by(
        &self,
        rank: usize,
        wait: &MessageWait,
        behind: &FxHashMap<u32, Vec<(i64, u32)>>,
    ) -> Option<u32> {
        let end = wait.end();
        let lane = self.ranks[rank].operations[wait.operation as usize].lane;
        let receives = behind.get(&lane)?;
        let &(_, receive) = receives.get(receives.partition_point(|&(begin, _)| begin < end))?;
        let sent = self.came(rank, receive)?;
        (sent <= end).then_some(receive)
    }

    /// Buffered sends of a rank.
    fn buffered(&self, rank: usize) -> Vec<u32> {
        let is_buffered = |half: &super::Half<'_>| {
            half.operation.is_send() && half.operation.mode == Mode::Buffered
        };
        self.halves(rank).filter(is_buffered).map(|half| half.index as u32).collect()
    }

    /// The buffered send whose receive came last while a call waited until all are taken.
    fn taken_last(&self, rank: usize, wait: &MessageWait, buffered: &[u32]) -> Option<u32> {
        let sends = buffered.iter().filter_map(|&send| {
            let begin = self.ranks[rank].endpoints[send as usize].begin;
            let came = self.came(rank, send).filter(|came| (wait.begin..wait.end()).contains(came));
            (begin < wait.begin).then_some((came?, send))
        });
        sends.max().map(|(_, send)| send)
    }

    /// When the other end of a message began.
    fn came(&self, rank: usize, endpoint: u32) -> Option<i64> {
        self.partner(&self.half(rank, endpoint as usize)).map(|other| other.post_begin)
    }

    fn lay_waits(&self, place: usize, waits: &mut [MessageWait]) {
        let rank = &self.ranks[place];
        let mut loops: FxHashMap<SiteId, i64> = FxHashMap::default();
        for wait in waits.iter_mut() {
            let operation = &rank.operations[wait.operation as usize];
            let is_look = self.is_look(place, wait);
            let end = if is_look { wait.begin } else { wait.end() };
            let since = match is_look {
                true => rank.presence.left_before(wait.begin).unwrap_or(rank.init_end),
                false => wait.begin,
            };
            // nothing but a message ends a probe that blocks
            let unknown = if is_look || operation.kind != Kind::Recv { since } else { end };
            let came = Some(wait.message).filter(|&message| message != NONE);
            let came = came.and_then(|message| self.came(place, message)).unwrap_or(unknown);
            wait.waited = (came.min(end) - since).max(0);
            if is_look {
                *loops.entry(operation.site).or_default() += wait.waited;
            }
        }
        for wait in waits.iter_mut().filter(|wait| self.is_look(place, wait)) {
            let site = rank.operations[wait.operation as usize].site;
            let all = loops[&site];
            let vain = rank.vain_probes.iter().find(|vain| vain.site == site);
            // of several threads it is not known whose probes they were; looks that are further apart are made in a computation
            let is_loop = |vain: &&VainProbes| {
                rank.threads.count() == 1 && all / (vain.count.max(1) as i64) <= WAITING_LOOP
            };
            let taken = vain.filter(is_loop).map_or(0, |vain| vain.ns.min(all));
            wait.waited = if all > 0 { in_proportion(taken, wait.waited, all) } else { 0 };
        }
    }
}

/// Receives from where probes found something, by lane and in the order of their posts.
fn receives(rank: &RankTrace, waits: &[MessageWait]) -> FxHashMap<u32, Vec<(i64, u32)>> {
    let lane_of = |operation: u32| rank.operations[operation as usize].lane;
    let wanted: FxHashSet<u32> = waits.iter().map(|wait| lane_of(wait.operation)).collect();
    let mut found: FxHashMap<u32, Vec<(i64, u32)>> = FxHashMap::default();
    for (index, endpoint) in (0..).zip(&rank.endpoints) {
        let lane = lane_of(endpoint.operation);
        let receives = rank.operations[endpoint.operation as usize].direction == Direction::Receive;
        if receives && lane != NONE && wanted.contains(&lane) {
            found.entry(lane).or_default().push((endpoint.begin, index));
        }
    }
    found.values_mut().for_each(|of_lane| of_lane.sort_unstable());
    found
}
