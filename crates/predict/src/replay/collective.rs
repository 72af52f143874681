//! Collectives: who has to be there, and how long it takes from then on.
//!
//! Other networks change what a collective takes as they change a message of 1 KiB. Of a non-blocking one a member that
//! computed in between waits as long as in the run on the average from where it waits.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::engine::{Engine, Trigger, NEVER};
use super::message::EndpointRef;
use super::outcome::NOBODY;
use super::scenario::Progress;
use lapscope_data::model::Needs;
use lapscope_trace::{Collective, Direction, Half, Span, Trace};

/// Whether a collective is replayed: all members are known, and whom they need. Others have their recorded durations.
pub fn is_replayed(trace: &Trace, collective: &Collective) -> bool {
    let needs = needs(trace, collective);
    let is_known = matches!(needs, Some(Needs::All | Needs::Root | Needs::AllAtRoot));
    is_known && collective.agrees && collective.members == collective.comm_size
}

/// Whom a collective or a fence needs.
fn needs(trace: &Trace, collective: &Collective) -> Option<Needs> {
    trace.blocking_calls[collective.blocking_call as usize].waits_for()
}

/// One collective of a replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    entered: u32,
    last: Trigger,
    root: i64,
}

impl Default for Gathering {
    fn default() -> Gathering {
        Gathering { entered: 0, last: Trigger { rank: NOBODY, time: i64::MIN }, root: NEVER }
    }
}

/// What a kind of collective took once everybody was there that it needs: means over the run, nanoseconds.
#[derive(Debug, Default)]
pub struct Durations {
    means: FxHashMap<CollectiveClass, Mean>,
    /// What was left of it where it was waited for behind computation, with no test in it, and everybody was there.
    left: FxHashMap<CollectiveClass, Mean>,
}

/// Blocking call that does the same, whether it is a request, size of the communicator, size class.
type CollectiveClass = (u32, bool, u32, u32);

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, ns: i64) {
        self.sum += ns as f64;
        self.count += 1;
    }

    fn ns(self) -> i64 {
        (self.sum / self.count.max(1) as f64).round() as i64
    }
}

impl Durations {
    /// From all collectives of a run that were waited for at once. Of each the member counts that left last: whoever leaves early
    /// waits for the others in what comes next.
    pub fn measure(trace: &Trace) -> Durations {
        let of_rank = |rank: usize| {
            let halves = trace.halves(rank);
            let parts = halves.filter(|half| half.operation.direction == Direction::Collective);
            let number = |half: &Half<'_>| trace.ranks[rank].endpoints[half.index].partner;
            let measured = |half: Half<'_>| {
                measure(trace, &half).map(|measured| (number(&half), key(&half), measured))
            };
            parts.filter_map(measured).collect::<Vec<_>>()
        };
        let per_rank: Vec<_> = (0..trace.ranks.len()).into_par_iter().map(of_rank).collect();
        let mut all = Durations::default();
        let mut longest: Vec<Option<(CollectiveClass, i64)>> = vec![None; trace.collectives.len()];
        for (number, key, measured) in per_rank.into_iter().flatten() {
            let ns = match measured {
                MeasuredDuration::AtOnce(ns) => ns,
                MeasuredDuration::Left(ns) => {
                    all.left.entry(key).or_default().add(ns);
                    continue;
                }
            };
            let known = &mut longest[number as usize];
            if known.map_or(true, |(_, other)| ns > other) {
                *known = Some((key, ns));
            }
        }
        // in the order of the collectives: sums of floating-point numbers depend on it
        for (key, ns) in longest.into_iter().flatten() {
            all.means.entry(key).or_default().add(ns);
        }
        all
    }

    /// What a request was measured to take, where it was measured, else what the blocking call was.
    fn get(&self, key: CollectiveClass) -> i64 {
        let (call, is_request, ranks, class) = key;
        let of = |is_request| self.means.get(&(call, is_request, ranks, class));
        let mean = of(is_request).or_else(|| of(!is_request));
        let left = self.left.get(&key).copied().map_or(0, Mean::ns);
        mean.copied().map_or(0, Mean::ns).max(left)
    }
}

fn key(half: &Half<'_>) -> CollectiveClass {
    let operation = half.operation;
    let class = u64::BITS - operation.bytes.0.leading_zeros();
    (operation.blocking_call, operation.is_request, operation.comm_size, class)
}

enum MeasuredDuration {
    /// From when everybody was there, and this member inside MPI all the time from then on; nanoseconds, as the next.
    AtOnce(i64),
    /// From when this member waited, everybody having been there before.
    Left(i64),
}

/// What one member took; `None` where it waits for nobody, or tested.
fn measure(trace: &Trace, half: &Half<'_>) -> Option<MeasuredDuration> {
    let collective = trace.collective(half).filter(|collective| is_replayed(trace, collective))?;
    let (begin, end) = (half.completion_begin?, half.completion_end?);
    let ready = match trace.awaited(half) {
        Some((awaited, _)) => awaited.max(half.post_begin),
        None => half.post_begin,
    };
    // who does not wait for others takes what it takes, and it is no measure of those who wait
    let waits = trace.awaited(half).is_some() || collective.members == 1;
    let is_at_once = begin <= ready.max(half.post_end);
    let is_tested = || half.observed.is_some_and(|observed| observed.unsuccessful_tests > 0);
    match waits {
        true if is_at_once => Some(MeasuredDuration::AtOnce((end - ready).max(0))),
        true if !is_tested() => Some(MeasuredDuration::Left(end - begin)),
        _ => None,
    }
}

impl Engine<'_> {
    /// A member is there.
    pub fn join(&mut self, end: EndpointRef, time: i64) {
        let trace = self.trace;
        let half = trace.half(end.rank as usize, end.endpoint as usize);
        let row = &trace.ranks[end.rank as usize].endpoints[end.endpoint as usize];
        let Some(collective) = trace.collective(&half) else { return };
        let gathering = &mut self.gatherings[row.partner as usize];
        gathering.entered += 1;
        gathering.last = Trigger { rank: end.rank, time };
        let is_root = collective.root == Some(end.rank);
        if is_root {
            gathering.root = time;
        }
        let is_whole = gathering.entered == collective.members;
        let (last, root_came) = (gathering.last, gathering.root);
        let own = Trigger { rank: end.rank, time };
        let takes = self.takes(&half);
        match needs(trace, collective) {
            Some(Needs::All) if is_whole => {
                let members: Vec<EndpointRef> =
                    trace.members(&half).map(|half| EndpointRef::from_half(&half)).collect();
                members.into_iter().for_each(|member| self.complete(member, time + takes, last));
            }
            Some(Needs::Root) if is_root => {
                self.complete(end, time, own);
                let others = trace.members(&half).map(|half| EndpointRef::from_half(&half));
                let here: Vec<EndpointRef> =
                    others.filter(|&other| self.has_joined(other, end)).collect();
                here.into_iter().for_each(|other| self.complete(other, time + takes, own));
            }
            Some(Needs::Root) if root_came != NEVER => {
                let root = collective.root.unwrap_or(NOBODY);
                let there = root_came + takes;
                let trigger = match there > time {
                    true => Trigger { rank: root, time: root_came },
                    false => own,
                };
                self.complete(end, there.max(time), trigger);
            }
            Some(Needs::AllAtRoot) => {
                if !is_root {
                    self.complete(end, time, own);
                }
                let root =
                    trace.members(&half).find(|half| collective.root == Some(half.rank as u32));
                if let Some(root) = root.filter(|_| is_whole) {
                    let takes = self.takes(&root);
                    self.complete(EndpointRef::from_half(&root), time + takes, last);
                }
            }
            _ => {}
        }
    }

    fn has_joined(&self, other: EndpointRef, root: EndpointRef) -> bool {
        let half = &self.ranks[other.rank as usize].halves[other.endpoint as usize];
        other.rank != root.rank && half.posted != NEVER
    }

    fn takes(&self, half: &Half<'_>) -> i64 {
        (self.durations.get(key(half)) as f64 * self.network.collectives).round() as i64
    }

    /// A non-blocking collective is waited for. While this member computed as much of it went by as in the recorded run; where
    /// that is not known no more than its first round, as all others need its members inside MPI.
    pub fn catch_up(&mut self, rank: u32, endpoint: u32, time: i64) {
        let state = &self.ranks[rank as usize];
        let half = state.halves[endpoint as usize];
        let has_progress = self.network.progress == Progress::Async || state.period > 0;
        if half.done == NEVER || has_progress {
            return;
        }
        let of_trace = self.trace.half(rank as usize, endpoint as usize);
        let takes = self.takes(&of_trace);
        let everybody = half.done - takes;
        let ranks = of_trace.operation.comm_size.max(2);
        let rounds = i64::from(u32::BITS - (ranks - 1).leading_zeros());
        if everybody < time {
            let left = self.durations.left.get(&key(&of_trace)).copied();
            let left = left.map(|left| left.ns() as f64 * self.network.collectives);
            let done = time + left.map_or(takes - takes / rounds, |left| left.round() as i64);
            let half = &mut self.ranks[rank as usize].halves[endpoint as usize];
            if done > half.done {
                *half = super::engine::Half {
                    done,
                    flight: rank,
                    since_trigger: Span::new(done - time),
                    ..*half
                };
            }
        }
    }
}

impl EndpointRef {
    pub(super) fn from_half(half: &Half<'_>) -> EndpointRef {
        EndpointRef { rank: half.rank as u32, endpoint: half.index as u32 }
    }
}
