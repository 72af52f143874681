//! Root causes of waits ([BO10], [BO16]): while a rank waited for another, what did that one do? It computed: then that
//! computation is the cause; it waited itself: then the cause is what it waited for, and so on.
//!
//! Each nanosecond of waiting has one cause, so the sums of all causes are the time waited. From a trigger on the
//! network is the cause. The papers charge whole delays, found as differences between what two ranks did since they
//! last synchronised; here the interval says directly what was late, and nothing is estimated. But of work spread
//! evenly over a long stretch the part before the others began to wait is charged to none. Sums are of integers, so
//! that the number of threads changes nothing.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::critical::Stretch;
use super::outcome::Outcome;
use super::program::Program;
use super::timeline::{ReplayedWait, Timeline};
use lapscope_trace::Trace;

/// Waits shorter than the run by more than this factor are not looked into.
const SHORT: i64 = 100_000;
/// How often a wait is led back to another.
const DEPTH: u32 = 32;
/// Parts into which one wait falls, and all waits of a run together.
const PARTS: u64 = 10_000;
const ALL_PARTS: u64 = 1 << 26;

/// What waits are due to. All times are nanoseconds, summed over the waits of all threads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Roots {
    /// The largest first. With `short` and `rest` together they are `waits`.
    pub causes: Vec<DelayCause>,
    pub waits: i64,
    /// Waits too short to be looked into.
    pub short: i64,
    /// Chains that were too long to be followed to their ends.
    pub rest: i64,
}

/// Something that a rank did while others waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayCause {
    pub rank: usize,
    pub what: Stretch,
    /// How long that took in all, waited for or not.
    pub took: i64,
    pub delayed: i64,
    pub delayed_ranks: usize,
}

/// Finds the causes that others waited for; a run that never ends has none. `top`: as many causes, 0 for all.
pub fn roots(trace: &Trace, program: &Program, outcome: &Outcome, top: usize) -> Roots {
    let Some(run) = outcome.run_ns(trace) else { return Roots::default() };
    let timeline = Timeline::new(trace, program, outcome);
    let ranks = trace.ranks.len();
    let budget = (ALL_PARTS / ranks.max(1) as u64).max(PARTS);
    let of_rank = |rank| Search::new(&timeline, budget).all_waits(rank, run / SHORT);
    let found: Vec<Search> = (0..ranks).into_par_iter().map(of_rank).collect();
    let mut roots = Roots::default();
    let mut causes: FxHashMap<(usize, Stretch), (i64, usize)> = FxHashMap::default();
    for of_rank in found {
        roots.waits += of_rank.waits;
        roots.short += of_rank.short;
        roots.rest += of_rank.rest;
        for (cause, delayed) in of_rank.causes {
            let sum = causes.entry(cause).or_default();
            *sum = (sum.0 + delayed, sum.1 + 1);
        }
    }
    let cause = |((rank, what), (delayed, delayed_ranks))| DelayCause {
        rank,
        what,
        took: 0,
        delayed,
        delayed_ranks,
    };
    roots.causes = causes.into_iter().map(cause).collect();
    roots.causes.sort_unstable_by_key(|cause| (-cause.delayed, cause.rank, cause.what));
    if top > 0 {
        roots.causes.truncate(top);
    }
    measure(&timeline, &mut roots.causes);
    roots
}

/// Says how long the causes took.
fn measure(timeline: &Timeline, causes: &mut [DelayCause]) {
    let mut ranks: Vec<usize> = causes.iter().map(|cause| cause.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let took: Vec<_> = ranks.par_iter().map(|&rank| (rank, stretches(timeline, rank))).collect();
    let took: FxHashMap<usize, FxHashMap<Stretch, i64>> = took.into_iter().collect();
    for cause in causes {
        cause.took = took[&cause.rank].get(&cause.what).copied().unwrap_or(0);
    }
}

/// All that a rank did.
fn stretches(timeline: &Timeline, rank: usize) -> FxHashMap<Stretch, i64> {
    let mut sums: FxHashMap<Stretch, i64> = FxHashMap::default();
    for (number, thread) in timeline.threads(rank).iter().enumerate() {
        let mut cursor = timeline.trace.ranks[rank].init_end;
        let mut before = None;
        for index in 0..thread.count() {
            let (begin, end) = (thread.begin(index), thread.end(index));
            let site = thread.site(index);
            *sums.entry(Stretch::Computation { before, after: site }).or_default() +=
                begin - cursor;
            if let Some(site) = site {
                let wait = timeline.wait(thread, index);
                let until = wait.map_or(end, |wait| wait.begin);
                *sums.entry(Stretch::Overhead(site)).or_default() += until - begin;
                let on_its_way = wait.map_or(0, |wait| end - wait.begin.max(wait.since));
                *sums.entry(Stretch::Communication(site)).or_default() += on_its_way;
            }
            (cursor, before) = (end, site);
        }
        if number == 0 {
            let rest = Stretch::Computation { before, after: None };
            *sums.entry(rest).or_default() += timeline.outcome.ranks[rank].end - cursor;
        }
    }
    sums
}

/// What one rank waited for.
struct Search<'a> {
    timeline: &'a Timeline<'a>,
    causes: FxHashMap<(usize, Stretch), i64>,
    waits: i64,
    short: i64,
    rest: i64,
    /// Parts that may still be made, in all and of the current wait.
    budget: u64,
    parts: u64,
}

impl<'a> Search<'a> {
    fn new(timeline: &'a Timeline<'a>, budget: u64) -> Search<'a> {
        let causes = FxHashMap::default();
        Search { timeline, causes, waits: 0, short: 0, rest: 0, budget, parts: 0 }
    }

    fn all_waits(mut self, rank: usize, short: i64) -> Search<'a> {
        let timeline = self.timeline;
        for thread in timeline.threads(rank) {
            for index in 0..thread.count() {
                let Some(wait) = timeline.wait(thread, index) else { continue };
                self.waits += wait.end - wait.begin;
                if wait.end - wait.begin < short {
                    self.short += wait.end - wait.begin;
                    continue;
                }
                let Some(site) = thread.site(index) else { continue };
                self.parts = PARTS.min(self.budget);
                let before = self.parts;
                self.charge(rank, Stretch::Communication(site), wait, DEPTH);
                self.budget -= before - self.parts;
            }
        }
        self
    }

    /// A wait, or a part of one: up to when the chain began that ended it, due to what its maker did, then to the network.
    fn charge(&mut self, rank: usize, network: Stretch, part: ReplayedWait, depth: u32) {
        let turn = part.since.clamp(part.begin, part.end);
        self.add(rank, network, part.end - turn);
        if turn > part.begin {
            match depth {
                0 => self.rest += turn - part.begin,
                _ => self.look(ReplayedWait { end: turn, ..part }, depth - 1),
            }
        }
    }

    /// What the thread did that was waited for, from `begin` to `end` of that wait.
    fn look(&mut self, waited: ReplayedWait, depth: u32) {
        let ReplayedWait { begin: from, end: to, rank, .. } = waited;
        let timeline = self.timeline;
        let thread = &timeline.threads(rank)[waited.thread];
        let mut next = thread.begun_before(from + 1);
        let mut moment = from;
        while moment < to {
            if self.parts == 0 {
                self.rest += to - moment;
                return;
            }
            self.parts -= 1;
            if let Some(index) = next.checked_sub(1) {
                let end = thread.end(index).min(to);
                self.call(waited, index, moment, end, depth);
                moment = moment.max(end);
            }
            let before = next.checked_sub(1).and_then(|index| thread.site(index));
            let until = if next < thread.count() { thread.begin(next).min(to) } else { to };
            let what = Stretch::Computation { before, after: thread.site(next) };
            self.add(rank, what, until - moment);
            moment = moment.max(until);
            next += 1;
        }
    }

    /// A call of the rank that was waited for, between two moments.
    fn call(&mut self, waited: ReplayedWait, index: usize, from: i64, to: i64, depth: u32) {
        let timeline = self.timeline;
        let thread = &timeline.threads(waited.rank)[waited.thread];
        let Some(site) = thread.site(index).filter(|_| from < to) else { return };
        let wait = timeline.wait(thread, index);
        let turn = wait.map_or(to, |wait| wait.begin.clamp(from, to));
        self.add(waited.rank, Stretch::Overhead(site), turn - from);
        if let Some(wait) = wait.filter(|_| turn < to) {
            let part = ReplayedWait { begin: turn, end: to, ..wait };
            self.charge(waited.rank, Stretch::Communication(site), part, depth);
        }
    }

    fn add(&mut self, rank: usize, what: Stretch, ns: i64) {
        if ns > 0 {
            *self.causes.entry((rank, what)).or_default() += ns;
        }
    }
}
