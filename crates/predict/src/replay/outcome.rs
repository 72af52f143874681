//! What a replay found: when everything happened.

use super::conditions::Conditions;
use lapscope_trace::Span;

/// Nobody.
pub const NOBODY: u32 = u32::MAX;

/// A replayed run. Moments are nanoseconds on the run's clock.
#[derive(Debug, Default)]
pub struct Outcome {
    /// In the order of [`lapscope_trace::Trace::ranks`].
    pub ranks: Vec<RankOutcome>,
    /// What it was made under.
    pub conditions: Conditions,
    /// Events, and steps of threads.
    pub events: u64,
    pub steps: u64,
    /// Threads that did not come to their end, the first that stopped first; empty in a run that ends.
    pub stuck: Vec<Stuck>,
}

#[derive(Debug, Default)]
pub struct RankOutcome {
    /// When each endpoint was posted.
    pub posted: Vec<i64>,
    /// As [`lapscope_trace::RankTrace::calls`].
    pub calls: Vec<CallTime>,
    /// Calls that have their recorded duration, from begin to end.
    pub other_calls: Vec<(i64, i64)>,
    pub end: i64,
    /// Time of the first thread: outside MPI; in calls without waiting; waiting, at last for the other threads to end.
    /// Together from the return of MPI_Init to `end`.
    pub compute: i64,
    pub overhead: i64,
    pub wait: i64,
}

/// A call, and what it waited for last.
#[derive(Debug, Clone, Copy)]
pub struct CallTime {
    pub begin: i64,
    pub duration: Span,
    /// The end of the call less the moment at which the chain of messages began that ended it, on rank `trigger`.
    pub since_trigger: Span,
    /// Whose post or entry into MPI that was; [`NOBODY`]: the call waited for nothing.
    pub trigger: u32,
    /// The endpoint that was complete last.
    pub endpoint: u32,
}

impl CallTime {
    pub const NEVER: CallTime = CallTime {
        begin: i64::MAX,
        duration: Span::NONE,
        since_trigger: Span::NONE,
        trigger: NOBODY,
        endpoint: NOBODY,
    };

    pub fn end(&self) -> i64 {
        self.begin.saturating_add(self.duration.or_zero())
    }
}

/// A thread that waits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    pub rank: u32,
    pub thread: u16,
    pub since: i64,
    /// The call that it is in.
    pub call: u32,
    /// The first of its endpoints that will not be complete.
    pub endpoint: u32,
}

impl Outcome {
    /// From the first return of MPI_Init to the last entry of MPI_Finalize; `None`: it never ends.
    pub fn run_ns(&self, trace: &lapscope_trace::Trace) -> Option<i64> {
        let begin = trace.ranks.iter().map(|rank| rank.init_end).min()?;
        let end = self.ranks.iter().map(|rank| rank.end).max()?;
        self.stuck.is_empty().then_some(end - begin)
    }
}
