//! Whom a one-sided call waited for: many an MPI moves such data without its target, so that it shows in the times alone.

use rustc_hash::FxHashMap;

use super::{Direction, Endpoint, Half, Operation, RankTrace, Trace, NONE};
use lapscope_data::model::{Epoch, Kind};

/// A call that took so long and ended as its partner entered MPI waited for that, nanoseconds.
pub const VISIBLE: i64 = 100_000;
/// Such a part of the call its end may be behind that.
const NEAR: i64 = 10;
const MUCH_NEARER: i64 = 50;

/// The rank that a one-sided call visibly waited for.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub rank: u32,
    /// When that entered MPI.
    pub entered: i64,
    /// What it had to do there.
    pub epoch: Epoch,
}

/// What a replay knows of it, whatever the times.
#[derive(Debug, Clone, Copy)]
pub struct Awaited {
    pub rank: u32,
    /// The call that it had to make; `None`: it had to be inside MPI, in whichever.
    pub call: Option<CallNumber>,
    /// From when that was so to the end of the call, nanoseconds.
    pub rest: i64,
}

/// Index into [`super::RankTrace::calls`], or, from their number on, into [`super::RankTrace::other_calls`].
pub type CallNumber = u32;

impl Trace {
    /// The target of a one-sided call; where it names no rank, the only one that it visibly waited for.
    pub fn target(&self, half: &Half<'_>) -> Option<Target> {
        let operation = half.operation;
        if operation.kind != Kind::Rma {
            return None;
        }
        if let Some(rank) = operation.peer {
            let entered = self.entered(half, rank)?;
            return Some(Target { rank, entered, epoch: Epoch::Progress });
        }
        let epoch = self.blocking_calls[operation.blocking_call as usize].epoch()?;
        let (rank, entered) = self.only_one_that_entered(half)?;
        Some(Target { rank, entered, epoch })
    }

    /// When a rank entered MPI for which the call visibly waited.
    fn entered(&self, half: &Half<'_>, rank: u32) -> Option<i64> {
        let presence = &self.ranks.get(rank as usize)?.presence;
        self.waited_until(half, |from| presence.next(from))
    }

    fn only_one_that_entered(&self, half: &Half<'_>) -> Option<(u32, i64)> {
        if half.completion_end? - half.post_begin < VISIBLE {
            return None;
        }
        let others = (0..self.ranks.len()).filter(|&rank| rank != half.rank);
        let mut all =
            others.filter_map(|rank| Some((rank as u32, self.entered(half, rank as u32)?)));
        all.next().filter(|_| all.next().is_none())
    }

    /// When the other side entered MPI, where the call that communicates, or completes what does, stood until then and had
    /// a processor; the other side may have been about to leave MPI when that began. `next`: when it was inside from a moment
    /// on.
    pub fn waited_until(
        &self,
        half: &Half<'_>,
        next: impl FnOnce(i64) -> Option<i64>,
    ) -> Option<i64> {
        let is_request = half.operation.is_request;
        let begin = if is_request { half.completion_begin } else { Some(half.post_begin) };
        let (begin, end) = begin.zip(half.completion_end)?;
        let stood = end - begin;
        if stood < VISIBLE {
            return None;
        }
        // where it may have waited for another one as well, both have to end as nearly together as that goes
        let near = match is_request && self.completes_others(half) {
            true => MUCH_NEARER,
            false => NEAR,
        };
        let entered = next(begin + stood / 10)?;
        if entered > end {
            return None;
        }
        let starvation = &self.ranks[half.rank].starvation;
        // it may have had no processor to end with
        let behind = end - entered - starvation.most_within(entered, end);
        // what ended at once was not kept by that
        let is_at_once = end - entered <= stood / MUCH_NEARER;
        let had_processor = || starvation.within(begin, entered) < (entered - begin) / 2;
        (behind <= stood / near && (is_at_once || had_processor())).then_some(entered)
    }

    /// Whether the call that completed a request completed others as well, which are not of the same rank.
    fn completes_others(&self, half: &Half<'_>) -> bool {
        let rank = &self.ranks[half.rank];
        let is_beside = |endpoint: &&Endpoint| Some(endpoint.call) == half.call;
        let (before, behind) = rank.endpoints.split_at(half.index);
        let beside = before.iter().rev().take_while(is_beside);
        let mut all = beside.chain(behind.iter().take_while(is_beside));
        let peer = |endpoint: &Endpoint| rank.operations[endpoint.operation as usize].peer;
        half.completed_together > 1 && all.any(|endpoint| peer(endpoint) != half.operation.peer)
    }

    /// Whom a blocking one-sided call waited for in the record, as far as it showed.
    #[inline]
    pub fn awaited_target(&self, half: &Half<'_>) -> Option<Awaited> {
        let is_one =
            half.operation.kind == Kind::Rma && half.operation.direction == Direction::None;
        is_one.then(|| self.awaited_targets.get(half.partner as usize).copied()).flatten()
    }

    /// Looks for whom blocking one-sided calls waited for, as recorded.
    pub(super) fn find_targets(&mut self) {
        let mut found: Vec<(usize, usize, Awaited)> = Vec::new();
        let mut calls: Vec<Option<FxHashMap<i64, CallNumber>>> = vec![None; self.ranks.len()];
        let is_one_sided = |operation: &Operation| operation.kind == Kind::Rma;
        for rank in 0..self.ranks.len() {
            // few runs have any, and rows are many
            if !self.ranks[rank].operations.iter().any(is_one_sided) {
                continue;
            }
            let halves = self.halves(rank).filter(|half| !half.operation.is_request);
            found.extend(halves.filter_map(|half| {
                let Target { rank: target, entered, epoch } = self.target(&half)?;
                let rest = (half.completion_end? - entered.max(half.post_begin)).max(0);
                let mut begun = || {
                    let of_target = &self.ranks[target as usize];
                    let calls = &mut calls[target as usize];
                    calls.get_or_insert_with(|| numbers(of_target)).get(&entered).copied()
                };
                let call = match epoch {
                    Epoch::Progress => None,
                    Epoch::Calls => Some(begun()?),
                };
                Some((rank, half.index, Awaited { rank: target, call, rest }))
            }));
        }
        for (rank, index, awaited) in found {
            let endpoint = &mut self.ranks[rank].endpoints[index];
            if endpoint.partner == NONE {
                endpoint.partner = self.awaited_targets.len() as u32;
                self.awaited_targets.push(awaited);
            }
        }
    }
}

/// By when they began.
fn numbers(rank: &RankTrace) -> FxHashMap<i64, CallNumber> {
    let calls = rank.calls.iter().map(|call| call.begin);
    let all = calls.chain(rank.other_calls.iter().map(|call| call.begin));
    all.zip(0..).collect()
}
