//! Collectives: who has to be there, and how long it takes from then on.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use lapscope_data::model::Needs;
use lapscope_trace::{Collective, Direction, Half, Trace};

/// Whether a collective is replayed: all members are known, and whom they need. Others have their recorded durations.
pub fn is_replayed(trace: &Trace, collective: &Collective) -> bool {
    let needs = needs(trace, collective);
    let is_known = matches!(needs, Some(Needs::All | Needs::Root | Needs::AllAtRoot));
    is_known && collective.agrees && collective.members == collective.comm_size
}

/// Whom a collective or a fence needs.
pub(super) fn needs(trace: &Trace, collective: &Collective) -> Option<Needs> {
    trace.blocking_calls[collective.blocking_call as usize].waits_for()
}

/// What a kind of collective took once everybody was there that it needs: means over the run, nanoseconds.
#[derive(Debug, Default)]
pub struct Durations {
    means: FxHashMap<CollectiveClass, Mean>,
    /// What was left of it where it was waited for behind computation, with no test in it, and everybody was there.
    pub(super) left: FxHashMap<CollectiveClass, Mean>,
}

/// Blocking call that does the same, whether it is a request, size of the communicator, size class.
pub(super) type CollectiveClass = (u32, bool, u32, u32);

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, ns: i64) {
        self.sum += ns as f64;
        self.count += 1;
    }

    pub fn ns(self) -> i64 {
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
    pub(super) fn get(&self, key: CollectiveClass) -> i64 {
        let (call, is_request, ranks, class) = key;
        let of = |is_request| self.means.get(&(call, is_request, ranks, class));
        let mean = of(is_request).or_else(|| of(!is_request));
        let left = self.left.get(&key).copied().map_or(0, Mean::ns);
        mean.copied().map_or(0, Mean::ns).max(left)
    }
}

pub(super) fn key(half: &Half<'_>) -> CollectiveClass {
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
