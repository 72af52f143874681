//! The critical path: the chain of computations, calls and messages that the run's time is made of. Walked backwards from the last
//! end [BO12]: through computation and calls that did not wait on the same thread, from a call that waited to the moment
//! on which the chain of messages began that ended it.
//!
//! What passes between the trigger and the end of a call that waited is communication of that call: a link that was
//! busy, and the rounds of a collective, are in it. The parts add up to the run time. A call with a cost of its own
//! waits after it: if the cost is longer than what it had to wait, it did not wait. The path is one of a model, which
//! has no noise of other ranks; so the error of the identity replay stands beside it.

use rustc_hash::FxHashMap;

use super::outcome::Outcome;
use super::program::Program;
use super::timeline::{ThreadTimes, Timeline};
use lapscope_data::places::SiteId;
use lapscope_trace::Trace;

/// A kind of time, and where it went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stretch {
    /// Between two calls; `None`: MPI_Init, MPI_Finalize.
    Computation { before: Option<SiteId>, after: Option<SiteId> },
    /// In a call, without waiting.
    Overhead(SiteId),
    /// What a call waited for, from when nothing but the network was left to wait for.
    Communication(SiteId),
}

/// The critical path of a run that ends. All times are nanoseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// From the first return of MPI_Init to the last end.
    pub length: i64,
    /// By rank; communication is the waiting rank's. A rank that begins later has computed until then.
    pub ranks: Vec<i64>,
    /// The largest first; together `length`.
    pub stretches: Vec<(Stretch, i64)>,
}

/// `None` of a run that never ends.
pub fn critical_path(trace: &Trace, program: &Program, outcome: &Outcome) -> Option<Path> {
    let timeline = Timeline::new(trace, program, outcome);
    let length = outcome.run_ns(trace)?;
    let last = (0..outcome.ranks.len()).rev().max_by_key(|&rank| outcome.ranks[rank].end)?;
    let mut walk = Walk {
        timeline: &timeline,
        ranks: vec![0; trace.ranks.len()],
        stretches: FxHashMap::default(),
        idle: 0,
    };
    walk.back(last, outcome.ranks[last].end);
    let mut stretches: Vec<(Stretch, i64)> = walk.stretches.into_iter().collect();
    stretches.sort_unstable_by_key(|&(stretch, ns)| (-ns, stretch));
    Some(Path { length, ranks: walk.ranks, stretches })
}

struct Walk<'a> {
    timeline: &'a Timeline<'a>,
    ranks: Vec<i64>,
    stretches: FxHashMap<Stretch, i64>,
    /// Jumps since time last went back.
    idle: usize,
}

/// Where the walk is: all of the path behind `moment` is known.
#[derive(Clone, Copy)]
struct At {
    rank: usize,
    thread: usize,
    moment: i64,
    /// Calls of that thread that were entered before.
    begun: usize,
}

impl<'a> Walk<'a> {
    fn back(&mut self, rank: usize, end: i64) {
        let threads = self.timeline.threads(rank);
        // the others end with their last call
        let ends_last = |thread: &ThreadTimes| {
            thread.count().checked_sub(1).is_some_and(|last| thread.end(last) >= end)
        };
        let thread = threads.iter().position(ends_last).unwrap_or(0);
        let mut at = self.arrive(rank, thread, end);
        while at.begun > 0 {
            at = self.step(at);
        }
        let first = self.timeline.threads(at.rank)[at.thread].site(0);
        let stretch = Stretch::Computation { before: None, after: first };
        self.add(at.rank, stretch, at.moment - self.timeline.begin());
    }

    fn arrive(&self, rank: usize, thread: usize, moment: i64) -> At {
        let begun = self.timeline.threads(rank)[thread].begun_before(moment);
        At { rank, thread, moment, begun }
    }

    fn step(&mut self, at: At) -> At {
        let thread = &self.timeline.threads(at.rank)[at.thread];
        let index = at.begun - 1;
        let (begin, end) = (thread.begin(index), thread.end(index));
        let site = thread.site(index);
        let computation = Stretch::Computation { before: site, after: thread.site(at.begun) };
        self.add(at.rank, computation, at.moment - end);
        let moment = at.moment.min(end);
        let Some(site) = site.filter(|_| moment > begin) else {
            return self.before(thread, At { moment, ..at });
        };
        let wait = self.timeline.wait(thread, index).filter(|wait| wait.end == moment);
        if let Some(wait) = wait.filter(|wait| self.may_go(wait.since, moment)) {
            let since = wait.since.max(self.timeline.begin());
            self.add(at.rank, Stretch::Communication(site), moment - since);
            return self.arrive(wait.rank, wait.thread, since);
        }
        self.add(at.rank, Stretch::Overhead(site), moment - begin);
        self.before(thread, At { moment: begin, ..at })
    }

    /// Calls that began and ended at that very moment are behind it, too.
    fn before(&mut self, thread: &ThreadTimes, at: At) -> At {
        let mut begun = at.begun;
        while begun > 0 && thread.begin(begun - 1) >= at.moment {
            begun -= 1;
        }
        self.idle = 0;
        At { begun, ..at }
    }

    /// Where messages take no time, it could go in circles.
    fn may_go(&mut self, since: i64, moment: i64) -> bool {
        self.idle = if since < moment { 0 } else { self.idle + 1 };
        self.idle <= self.ranks.len()
    }

    fn add(&mut self, rank: usize, stretch: Stretch, ns: i64) {
        if ns > 0 {
            self.ranks[rank] += ns;
            *self.stretches.entry(stretch).or_default() += ns;
        }
    }
}
