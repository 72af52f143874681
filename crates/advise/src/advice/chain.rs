//! Whom a late partner was waiting for itself, and so on: where a wait began. Only what lies within the first wait counts, so
//! that an answer is about the same step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use lapscope_data::places::SiteId;

/// That one rank waited for another. Moments as in [`Trace`](lapscope_trace::Trace).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RankWait {
    pub begin: i64,
    pub end: i64,
    /// The call that waited.
    pub by: SiteId,
    /// A place in [`Trace::ranks`](lapscope_trace::Trace::ranks).
    pub whom: u32,
    /// The other end's post or call; in a collective the same as `by`.
    pub awaited: SiteId,
    /// The awaited rank was outside MPI for most of that time.
    pub is_outside: bool,
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
    /// By rank, in order.
    waits: &'a BTreeMap<u32, Vec<RankWait>>,
}

impl<'a> Chains<'a> {
    pub fn new(waits: &'a BTreeMap<u32, Vec<RankWait>>) -> Chains<'a> {
        Chains { waits }
    }

    /// For each call that waited for ranks which were inside MPI themselves: where that began, by time.
    pub fn origins(&self) -> BTreeMap<SiteId, BTreeMap<Origin, i64>> {
        let mut origins: BTreeMap<SiteId, BTreeMap<Origin, i64>> = BTreeMap::new();
        for (&rank, waits) in self.waits {
            for wait in waits.iter().filter(|wait| !wait.is_outside) {
                let of_site = origins.entry(wait.by).or_default();
                *of_site.entry(self.origin(rank, *wait)).or_default() += wait.end - wait.begin;
            }
        }
        origins
    }

    fn origin(&self, rank: u32, first: RankWait) -> Origin {
        let mut met = vec![rank];
        let mut wait = first;
        loop {
            let rank = wait.whom;
            let at = |doing| Origin { doing, rank, site: wait.awaited };
            if wait.is_outside {
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

    /// The longest wait of a rank during another's, as much of it as is; it has to be most of that.
    fn wait_within(&self, rank: u32, during: &RankWait) -> Option<RankWait> {
        let waits = self.waits.get(&rank)?;
        let first = waits.partition_point(|wait| wait.end <= during.begin);
        let within = waits[first..].iter().take_while(|wait| wait.begin < during.end);
        let cut = within.map(|wait| RankWait {
            begin: wait.begin.max(during.begin),
            end: wait.end.min(during.end),
            ..*wait
        });
        let longest = cut.max_by_key(|wait| wait.end - wait.begin)?;
        let is_most = (longest.end - longest.begin) * 2 >= during.end - during.begin;
        is_most.then_some(longest)
    }
}
