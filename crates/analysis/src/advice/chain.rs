//! Whom a late partner was waiting for itself, and so on: where a wait began. Only what lies within the first wait counts, so
//! that an answer is about the same step.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::trace::{Trace, NONE};
use lapscope_data::places::SiteId;

/// That one rank waited for another. Moments as in [`Trace`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub begin: i64,
    pub end: i64,
    /// Operation of the call that waited.
    pub by: u32,
    /// A place in [`Trace::ranks`].
    pub whom: u32,
    /// Operation of the other end's post or call; [`NONE`]: the same as `by`, in a collective.
    pub post: u32,
}

/// What the rank did where a chain of waits began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It was outside MPI.
    Computing,
    /// It was inside MPI and waited for nobody that is known.
    InMpi,
    /// It waited for one that waited for it.
    WaitingInCircle,
}

/// Where a chain of waits began: the rank, and what the next one waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub doing: Doing,
    pub rank: u32,
    pub site: SiteId,
}

/// The waits of a run.
pub(super) struct Chains<'a> {
    trace: &'a Trace,
    /// By rank, in order.
    waits: &'a BTreeMap<u32, Vec<Wait>>,
}

impl<'a> Chains<'a> {
    pub fn new(trace: &'a Trace, waits: &'a BTreeMap<u32, Vec<Wait>>) -> Chains<'a> {
        Chains { trace, waits }
    }

    /// For each call that waited for ranks which were inside MPI themselves: where that began, by time.
    pub fn origins(&self) -> BTreeMap<SiteId, BTreeMap<Origin, i64>> {
        let mut origins: BTreeMap<SiteId, BTreeMap<Origin, i64>> = BTreeMap::new();
        for (&rank, waits) in self.waits {
            for wait in waits.iter().filter(|wait| !self.is_outside(wait)) {
                let of_site = origins.entry(self.site(rank, wait.by)).or_default();
                *of_site.entry(self.origin(rank, *wait)).or_default() += wait.end - wait.begin;
            }
        }
        origins
    }

    fn origin(&self, rank: u32, first: Wait) -> Origin {
        let mut met = vec![rank];
        let mut wait = first;
        loop {
            let rank = wait.whom;
            let at = |doing| Origin { doing, rank, site: self.awaited(met[met.len() - 1], &wait) };
            if self.is_outside(&wait) {
                return at(Doing::Computing);
            }
            if met.contains(&rank) {
                return at(Doing::WaitingInCircle);
            }
            let Some(next) = self.wait_within(rank, &wait) else { return at(Doing::InMpi) };
            met.push(rank);
            wait = next;
        }
    }

    /// Whether the awaited rank was outside MPI for most of that time.
    fn is_outside(&self, wait: &Wait) -> bool {
        let presence = &self.trace.ranks[wait.whom as usize].presence;
        presence.outside(wait.begin, wait.end) * 2 >= wait.end - wait.begin
    }

    /// The longest wait of a rank during another's, as much of it as is; it has to be most of that.
    fn wait_within(&self, rank: u32, during: &Wait) -> Option<Wait> {
        let waits = self.waits.get(&rank)?;
        let first = waits.partition_point(|wait| wait.end <= during.begin);
        let within = waits[first..].iter().take_while(|wait| wait.begin < during.end);
        let cut = within.map(|wait| Wait {
            begin: wait.begin.max(during.begin),
            end: wait.end.min(during.end),
            ..*wait
        });
        let longest = cut.max_by_key(|wait| wait.end - wait.begin)?;
        let is_most = (longest.end - longest.begin) * 2 >= during.end - during.begin;
        is_most.then_some(longest)
    }

    /// Where the awaited rank came to, when it came.
    fn awaited(&self, by: u32, wait: &Wait) -> SiteId {
        match wait.post {
            NONE => self.site(by, wait.by),
            post => self.site(wait.whom, post),
        }
    }

    fn site(&self, rank: u32, operation: u32) -> SiteId {
        self.trace.ranks[rank as usize].operations[operation as usize].site
    }
}
