//! Probes that waited for a message to come: MPI_Probe and MPI_Mprobe, and loops of MPI_Iprobe and MPI_Improbe. What each found
//! is the message that is received next of the same communicator, source and tag (MPI-4.1 3.8.1); how long it waited is told by when
//! that had been sent.
//!
//! Of the probes of a loop that found nothing the sum of their times is recorded, for each place. It is laid to the loops by how
//! long each may have lasted: from the call before it until the message was sent.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::endpoint::NONE;
use super::operation::Direction;
use super::stats::in_proportion;
use super::{RankTrace, Trace, WAITING_LOOP};
use lapscope_data::places::SiteId;

/// A probe that found a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Nanoseconds on the run's clock.
    pub begin: i64,
    pub duration: i64,
    pub operation: u32,
    /// Index into [`RankTrace::other_calls`], where these were read.
    pub number: u32,
    /// The endpoint that received what it found; [`NONE`]: not known.
    pub receive: u32,
    /// What it waited for a message that had not been sent: of a call that blocks its own time, of a loop what the probes took
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

impl Trace {
    /// Whether a probe returns whatever is there: it ends a loop.
    pub fn is_look(&self, rank: usize, probe: &Probe) -> bool {
        let call = self.call_of(&self.ranks[rank].operations[probe.operation as usize]);
        call.blocking != call.name
    }

    /// Looks for what probes found, and for how long they waited.
    pub(super) fn find_probed(&mut self) {
        for rank in 0..self.ranks.len() {
            let mut probes = std::mem::take(&mut self.ranks[rank].probes);
            if probes.is_empty() {
                continue;
            }
            let behind = receives(&self.ranks[rank], &probes);
            for probe in &mut probes {
                probe.receive = self.found_by(rank, probe, &behind).unwrap_or(NONE);
            }
            self.lay_waits(rank, &mut probes);
            self.ranks[rank].probes = probes;
        }
    }

    /// The endpoint that received what a probe found; not one whose message was sent when the probe had returned.
    fn found_by(
        &self,
        rank: usize,
        probe: &Probe,
        behind: &FxHashMap<u32, Vec<(i64, u32)>>,
    ) -> Option<u32> {
        let end = probe.begin + probe.duration;
        let lane = self.ranks[rank].operations[probe.operation as usize].lane;
        let receives = behind.get(&lane)?;
        let &(_, receive) = receives.get(receives.partition_point(|&(begin, _)| begin < end))?;
        let sent = self.sent(rank, receive)?;
        (sent <= end).then_some(receive)
    }

    /// When the message began to be sent that an endpoint received.
    fn sent(&self, rank: usize, receive: u32) -> Option<i64> {
        self.partner(&self.half(rank, receive as usize)).map(|send| send.post_begin)
    }

    fn lay_waits(&self, place: usize, probes: &mut [Probe]) {
        let rank = &self.ranks[place];
        let mut loops: FxHashMap<SiteId, i64> = FxHashMap::default();
        for probe in probes.iter_mut() {
            let site = rank.operations[probe.operation as usize].site;
            let is_look = self.is_look(place, probe);
            let end = probe.begin + if is_look { 0 } else { probe.duration };
            let since = match is_look {
                true => rank.presence.left_before(probe.begin).unwrap_or(rank.init_end),
                false => probe.begin,
            };
            // nothing but a message ends a call that blocks
            let unknown = if is_look { since } else { end };
            let sent = Some(probe.receive).filter(|&receive| receive != NONE);
            let sent = sent.and_then(|receive| self.sent(place, receive)).unwrap_or(unknown);
            probe.waited = (sent.min(end) - since).max(0);
            if is_look {
                *loops.entry(site).or_default() += probe.waited;
            }
        }
        for probe in probes.iter_mut().filter(|probe| self.is_look(place, probe)) {
            let site = rank.operations[probe.operation as usize].site;
            let all = loops[&site];
            let vain = rank.vain_probes.iter().find(|vain| vain.site == site);
            // of several threads it is not known whose probes they were; looks that are further apart are made in a computation
            let is_loop = |vain: &&VainProbes| {
                rank.threads.count() == 1 && all / (vain.count.max(1) as i64) <= WAITING_LOOP
            };
            let taken = vain.filter(is_loop).map_or(0, |vain| vain.ns.min(all));
            probe.waited = if all > 0 { in_proportion(taken, probe.waited, all) } else { 0 };
        }
    }
}

/// Receives from where probes found something, by lane and in the order of their posts.
fn receives(rank: &RankTrace, probes: &[Probe]) -> FxHashMap<u32, Vec<(i64, u32)>> {
    let lane_of = |operation: u32| rank.operations[operation as usize].lane;
    let wanted: FxHashSet<u32> = probes.iter().map(|probe| lane_of(probe.operation)).collect();
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
