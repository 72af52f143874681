//! When each step of a replay began, put together again from an outcome: of the ranks that are asked about, 8 bytes a step.

use std::sync::OnceLock;

use super::outcome::{Outcome, NOBODY};
use super::program::{Action, Program, Step, ThreadProgram};
use lapscope_data::places::SiteId;
use lapscope_trace::{Direction, RankTrace, Trace};

/// The steps of all threads in time.
pub struct Timeline<'a> {
    pub trace: &'a Trace,
    pub program: &'a Program,
    pub outcome: &'a Outcome,
    ranks: Vec<OnceLock<Vec<ThreadTimes<'a>>>>,
}

/// The steps of one thread.
pub struct ThreadTimes<'a> {
    timeline: ReplayedRank<'a>,
    steps: &'a [Step],
    /// When each call was entered; those that were never reached have none.
    begins: Vec<i64>,
}

#[derive(Clone, Copy)]
struct ReplayedRank<'a> {
    program: &'a Program,
    trace: &'a RankTrace,
    outcome: &'a super::outcome::RankOutcome,
    rank: usize,
}

/// The part of a call in which it waited, and what ended that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedWait {
    pub begin: i64,
    pub end: i64,
    /// The rank, its thread, and the moment at which the chain of messages began that ended it; not after `end`.
    pub rank: usize,
    pub thread: usize,
    pub since: i64,
}

impl<'a> Timeline<'a> {
    pub fn new(trace: &'a Trace, program: &'a Program, outcome: &'a Outcome) -> Timeline<'a> {
        let ranks = trace.ranks.iter().map(|_| OnceLock::new()).collect();
        Timeline { trace, program, outcome, ranks }
    }

    pub fn threads(&self, rank: usize) -> &[ThreadTimes<'a>] {
        self.ranks[rank].get_or_init(|| {
            let threads = self.program.ranks[rank].threads.iter();
            threads.map(|thread| self.thread(rank, thread)).collect()
        })
    }

    /// The first return of MPI_Init.
    pub fn begin(&self) -> i64 {
        self.trace.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0)
    }

    fn thread(&self, rank: usize, thread: &'a ThreadProgram) -> ThreadTimes<'a> {
        let place = ReplayedRank {
            program: self.program,
            trace: &self.trace.ranks[rank],
            outcome: &self.outcome.ranks[rank],
            rank,
        };
        let mut begins = Vec::with_capacity(thread.steps.len());
        let mut cursor = place.trace.init_end;
        for step in &thread.steps {
            let computed = cursor + self.outcome.conditions.gap(rank, step.gap.or_zero());
            // the end of a long call is rounded, the begin of the next one may be known
            let begin = match step.action() {
                Action::Post(endpoint) => place.outcome.posted[endpoint as usize],
                Action::Call(first) | Action::Finish(first) => {
                    place.outcome.calls[place.call(first)].begin
                }
                Action::Loop(_) | Action::Start(_) | Action::Other(_) | Action::Never(_) => {
                    computed
                }
            };
            // a call that never ended has no begin
            begins.push(if begin == i64::MAX { computed } else { begin.max(cursor) });
            match place.end(step, begins[begins.len() - 1]) {
                Some(end) => cursor = end,
                None => break,
            }
        }
        ThreadTimes { timeline: place, steps: &thread.steps, begins }
    }

    /// What a step waited for.
    pub fn wait(&self, thread: &ThreadTimes<'a>, index: usize) -> Option<ReplayedWait> {
        let place = &thread.timeline;
        let step = &thread.steps[index];
        let (Action::Call(first) | Action::Loop(first) | Action::Finish(first)) = step.action()
        else {
            return None;
        };
        let call = &place.outcome.calls[place.call(first)];
        let (begin, end) = (thread.begins[index], thread.end(index));
        let begin = begin + place.cost(step, first);
        if call.trigger == NOBODY || begin >= end {
            return None;
        }
        let since = call.since_trigger.or_zero();
        let slack = rounding(since) + rounding(call.duration.or_zero());
        let rank = call.trigger as usize;
        let (thread, since) = self.acted(rank, end - since, slack);
        Some(ReplayedWait { begin, end, rank, thread, since: since.min(end) })
    }

    /// Which thread of a rank entered MPI at a moment known to `slack`, and when exactly.
    fn acted(&self, rank: usize, moment: i64, slack: i64) -> (usize, i64) {
        let threads = self.threads(rank);
        let entered = threads.iter().enumerate().filter_map(|(number, thread)| {
            let begun = thread.begun_before(moment + slack + 1);
            let last = thread.begins[begun.checked_sub(1)?];
            (last >= moment - slack).then_some((number, last))
        });
        if let Some(nearest) = entered.min_by_key(|(_, begin)| (begin - moment).abs()) {
            return nearest;
        }
        // a test within a computation
        let computes = |thread: &ThreadTimes| match thread.begun_before(moment) {
            0 => true,
            begun => thread.end(begun - 1) <= moment,
        };
        (threads.iter().position(computes).unwrap_or(0), moment)
    }
}

/// By how much a [`lapscope_trace::Span`] may be too small.
fn rounding(ns: i64) -> i64 {
    const EXACT_BITS: u32 = 27;
    match ns >> EXACT_BITS {
        0 => 0,
        _ => (ns >> (EXACT_BITS - 1)) + 1,
    }
}

impl ReplayedRank<'_> {
    fn call(&self, first: u32) -> usize {
        self.program.ranks[self.rank].call_of(self.trace, first) as usize
    }

    /// `None`: it never ended.
    fn end(&self, step: &Step, begin: i64) -> Option<i64> {
        match step.action() {
            Action::Post(_) | Action::Start(_) | Action::Other(_) | Action::Never(_) => {
                Some(begin + step.cost.or_zero())
            }
            Action::Call(first) | Action::Loop(first) | Action::Finish(first) => {
                let call = &self.outcome.calls[self.call(first)];
                (call.begin != i64::MAX).then(|| call.end().max(begin))
            }
        }
    }

    /// What a call that waited took besides; a blocking send that waited does not take what it took in the recorded run.
    fn cost(&self, step: &Step, first: u32) -> i64 {
        let cost = step.cost.or_zero();
        let endpoint = self.program.ranks[self.rank].endpoints_of(self.trace, first).next();
        let operation = endpoint.map(|endpoint| {
            let row = &self.trace.endpoints[endpoint as usize];
            &self.trace.operations[row.operation as usize]
        });
        match operation {
            Some(it) if !it.is_request && it.direction == Direction::Send => {
                cost.min(self.program.overhead)
            }
            _ => cost,
        }
    }
}

impl ThreadTimes<'_> {
    /// Steps that were reached.
    pub fn count(&self) -> usize {
        self.begins.len()
    }

    /// When the call of a step begins.
    pub fn begin(&self, index: usize) -> i64 {
        self.begins[index]
    }

    /// Likewise; the last of a thread that never ends has none and ends where it began.
    pub fn end(&self, index: usize) -> i64 {
        let begin = self.begins[index];
        let end = self.timeline.end(&self.steps[index], begin).unwrap_or(begin);
        self.begins.get(index + 1).map_or(end, |&next| end.min(next))
    }

    /// Calls that were entered before a moment.
    pub fn begun_before(&self, moment: i64) -> usize {
        self.begins.partition_point(|&begin| begin < moment)
    }

    /// Where the call of a step is; `None` behind the last.
    pub fn site(&self, index: usize) -> Option<SiteId> {
        let RankTrace { operations, endpoints, calls, other_calls, .. } = self.timeline.trace;
        let operation = match self.steps.get(index)?.action() {
            Action::Post(endpoint) => endpoints[endpoint as usize].operation,
            Action::Call(first)
            | Action::Loop(first)
            | Action::Start(first)
            | Action::Finish(first)
            | Action::Never(first) => calls[self.timeline.call(first)].operation,
            Action::Other(call) => match calls.get(call as usize) {
                Some(call) => call.operation,
                None => other_calls[call as usize - calls.len()].operation,
            },
        };
        Some(operations[operation as usize].site)
    }
}
