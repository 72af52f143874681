//! What a run without injection tells: whether there is anything to gain, and how long slots should be.

use rustc_hash::FxHashMap;
use serde::Serialize;

use lapscope_advise::advice::Advice;
use lapscope_data::model::{Bytes, Nanos};
use lapscope_data::places::{CallPathId, SiteId};
use lapscope_measure::injection::LEAST_SLOTS;
use lapscope_trace::injected::distances::Distances;
use lapscope_trace::stats::upper_median;
use lapscope_trace::{Half, Trace};

/// Less than this fraction of the run time of all ranks at stake is nothing to gain.
const WORTH_TRYING: f64 = 0.005;

/// Slots that each arm needs, and that are plenty.
const FEW_SLOTS: i64 = LEAST_SLOTS as i64;
const PLENTY_OF_SLOTS: i64 = 50;

/// Steps of the program that a slot should hold, so that few requests live in two slots.
const STEPS_IN_A_SLOT: i64 = 4;

/// A site with less than this fraction of a rank's bytes in large requests does not set its step.
const MATTERS: f64 = 0.1;

/// What matters for injection.
#[derive(Debug, Clone, Serialize)]
pub struct FirstRun {
    /// From MPI_Init to MPI_Finalize: of the rank that took longest, of all ranks together.
    pub longest_ns: Nanos,
    pub run_ns: Nanos,
    pub ranks: u64,
    /// All; those of at least `min_bytes`; the largest.
    pub requests: u64,
    pub large_requests: u64,
    pub largest_bytes: Bytes,
    pub min_bytes: u64,
    /// Computation in the windows of large requests, summed.
    pub compute_ns: Nanos,
    /// Time between posts of large requests at one place.
    pub step_ns: Option<Nanos>,
    /// Time of waits that tests in computation may save, summed over ranks.
    pub stake_ns: Nanos,
    /// Copies of sends that the advice is to make, and what those wait for; `None`: there is no such advice to speak of.
    pub copies: Option<Copies>,
    /// `min_bytes` with which something could be gained where there is nothing with this one.
    pub smaller_bytes: Option<u64>,
    /// Ranks on this machine; `None`: they were elsewhere.
    pub crowd: Option<Crowd>,
    /// A driver of an accelerator came into some rank: nobody is interrupted there.
    pub has_gpu_driver: bool,
}

/// Ranks on this machine, and its processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Crowd {
    pub ranks: usize,
    pub processors: usize,
}

impl Crowd {
    /// `None`: the ranks were elsewhere.
    pub fn measure(trace: &Trace, host: &str) -> Option<Crowd> {
        let ranks = trace.ranks.iter().filter(|rank| rank.info().host == host).count();
        let processors = std::thread::available_parallelism().ok()?.get();
        (ranks > 0).then_some(Crowd { ranks, processors })
    }
}

/// Standard sends that wait for their receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// The largest of them: for LAPSCOPE_BUFFER_SENDS.
    pub bytes: u64,
    pub stake_ns: Nanos,
}

/// Why injection cannot help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hopeless {
    /// No request is as large as LAPSCOPE_INJECT_MIN_BYTES.
    OnlySmall,
    /// Nothing is computed while large requests are pending.
    NoComputation,
    /// Hardly any time is spent waiting for what could have moved during computation.
    NothingLost,
}

/// The slots of an A/B run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slots {
    pub ms: i64,
    /// That fit into the run, both arms together.
    pub count: i64,
    /// Fewer than a confidence interval needs.
    pub too_few: bool,
}

impl FirstRun {
    pub fn new(trace: &Trace, advice: &[Advice], min_bytes: u64) -> FirstRun {
        let runs = trace.ranks.iter().map(|rank| rank.info().run_time());
        let mut first = FirstRun {
            longest_ns: runs.clone().max().unwrap_or_default(),
            run_ns: runs.sum(),
            ranks: trace.ranks.len() as u64,
            requests: 0,
            large_requests: 0,
            largest_bytes: Bytes(0),
            min_bytes,
            compute_ns: Nanos(0),
            step_ns: step(trace, min_bytes),
            stake_ns: stake(advice, min_bytes),
            copies: None,
            smaller_bytes: None,
            crowd: None,
            has_gpu_driver: trace.ranks.iter().any(|rank| rank.info().may_use_gpu()),
        };
        first.copies = copies(advice, min_bytes).filter(|it| !first.is_nothing(it.stake_ns));
        for half in requests(trace) {
            first.requests += 1;
            first.largest_bytes = first.largest_bytes.max(half.bytes());
            if half.bytes().0 >= min_bytes {
                first.large_requests += 1;
                let window = half.window().unwrap_or(0) - half.mpi.unwrap_or(0);
                first.compute_ns += Nanos(window.max(0));
            }
        }
        first.smaller_bytes = first.smaller(advice);
        first
    }

    fn is_nothing(&self, time: Nanos) -> bool {
        time.share_of(self.run_ns) < WORTH_TRYING
    }

    /// The size of the smallest of the messages for which most is at stake.
    fn smaller(&self, advice: &[Advice]) -> Option<u64> {
        let tests = advice.iter().filter(|advice| advice.is_for_tests());
        let most = tests.max_by_key(|advice| advice.time_ns)?;
        let bytes = most.evidence.min_bytes;
        (bytes < self.min_bytes && !self.is_nothing(most.time_ns)).then_some(bytes)
    }

    pub fn hopeless(&self) -> Option<Hopeless> {
        if self.large_requests == 0 {
            Some(Hopeless::OnlySmall)
        } else if !self.is_nothing(self.stake_ns) {
            None
        } else if self.is_nothing(self.compute_ns) {
            Some(Hopeless::NoComputation)
        } else {
            Some(Hopeless::NothingLost)
        }
    }

    /// Slots of some steps, as many as a confidence interval needs; of another length where that is `wanted`.
    pub fn slots(&self, wanted: Option<i64>) -> Slots {
        let run = self.longest_ns.0;
        let step = self.step_ns.map_or(0, |step| step.0);
        let fitting = (STEPS_IN_A_SLOT * step).max(run / (2 * PLENTY_OF_SLOTS));
        let length = fitting.min(run / (2 * FEW_SLOTS)).max(step);
        let ms = wanted.unwrap_or(length / 1_000_000).clamp(1, 3_600_000);
        let count = run / (ms * 1_000_000);
        Slots { ms, count, too_few: count < 2 * FEW_SLOTS }
    }
}

/// What is waited for where advice is to test, or that tests would do as well.
fn stake(advice: &[Advice], min_bytes: u64) -> Nanos {
    let is_one = |advice: &&Advice| advice.is_for_tests() && advice.evidence.max_bytes >= min_bytes;
    advice.iter().filter(is_one).map(|advice| advice.time_ns).sum()
}

fn copies(advice: &[Advice], min_bytes: u64) -> Option<Copies> {
    let named = || {
        let named =
            advice.iter().filter_map(|advice| Some((advice.or_copy.as_ref()?.bytes, advice)));
        named.filter(|(bytes, _)| *bytes >= min_bytes)
    };
    let bytes = named().map(|(bytes, _)| bytes).max()?;
    Some(Copies { bytes, stake_ns: named().map(|(_, advice)| advice.time_ns).sum() })
}

fn requests(trace: &Trace) -> impl Iterator<Item = Half<'_>> {
    let of_rank = |rank| trace.halves(rank).filter(|half| half.operation.is_request);
    (0..trace.ranks.len()).flat_map(of_rank)
}

/// The time between two posts of large requests at one place, where the slowest place of a rank counts, and the middle one of
/// the ranks. `None`: nothing is posted twice.
fn step(trace: &Trace, min_bytes: u64) -> Option<Nanos> {
    let of_ranks = (0..trace.ranks.len()).filter_map(|rank| {
        let mut sites: FxHashMap<(SiteId, Option<CallPathId>), (u64, Vec<i64>)> =
            FxHashMap::default();
        for half in trace.halves(rank) {
            let operation = half.operation;
            if operation.is_request && !operation.is_second_half && operation.bytes.0 >= min_bytes {
                let (bytes, posts) = sites.entry((operation.site, operation.path)).or_default();
                *bytes += operation.bytes.0;
                posts.push(half.post_begin);
            }
        }
        let all: u64 = sites.values().map(|(bytes, _)| bytes).sum();
        let matters = |(bytes, _): &(u64, Vec<i64>)| *bytes as f64 >= MATTERS * all as f64;
        sites
            .into_values()
            .filter(matters)
            .filter_map(|(_, posts)| Distances::between(posts).usual())
            .max()
    });
    let mut steps: Vec<Nanos> = of_ranks.collect();
    upper_median(&mut steps, Ord::cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(longest_ms: i64, step_ms: i64) -> FirstRun {
        FirstRun {
            longest_ns: Nanos(longest_ms * 1_000_000),
            run_ns: Nanos(2 * longest_ms * 1_000_000),
            ranks: 2,
            requests: 12,
            large_requests: 10,
            largest_bytes: Bytes(1 << 20),
            min_bytes: 1 << 16,
            compute_ns: Nanos(longest_ms * 500_000),
            step_ns: Some(Nanos(step_ms * 1_000_000)),
            stake_ns: Nanos(longest_ms * 100_000),
            copies: None,
            smaller_bytes: None,
            crowd: None,
            has_gpu_driver: false,
        }
    }

    #[test]
    fn slots_hold_some_steps_and_there_are_enough_of_them() {
        let slots = |longest, step| first(longest, step).slots(None);
        assert_eq!(slots(10_000, 10), Slots { ms: 100, count: 100, too_few: false });
        assert_eq!(slots(10_000, 100), Slots { ms: 400, count: 25, too_few: false });
        assert_eq!(slots(10_000, 300), Slots { ms: 625, count: 16, too_few: false });
        assert_eq!(slots(10_000, 1_000), Slots { ms: 1_000, count: 10, too_few: true });
        assert_eq!(slots(10, 0), Slots { ms: 1, count: 10, too_few: true });
        assert_eq!(first(10_000, 10).slots(Some(1_000)).ms, 1_000);
    }

    #[test]
    fn why_nothing_can_be_gained() {
        let run = first(1_000, 10);
        assert_eq!(run.hopeless(), None);
        let lost = FirstRun { stake_ns: Nanos(1_000), ..run.clone() };
        assert_eq!(lost.hopeless(), Some(Hopeless::NothingLost));
        let window = FirstRun { compute_ns: Nanos(0), ..lost.clone() };
        assert_eq!(window.hopeless(), Some(Hopeless::NoComputation));
        assert_eq!(FirstRun { large_requests: 0, ..run }.hopeless(), Some(Hopeless::OnlySmall));
    }
}
