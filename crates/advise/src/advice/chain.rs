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
    /// It was inside MPI and waited for several ranks, for none of them most of the time.
    WaitingForSeveral,
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
            let next = match self.wait_within(rank, &wait) {
                Within::One(next) => next,
                Within::Several => return at(Doing::WaitingForSeveral),
                Within::Nobody => return at(Doing::InMpi),
            };
            met.push(rank);
            wait = next;
        }
    }

    /// For whom a rank waited during another's wait, as much of that as is; it has to be most of it.
    fn wait_within(&self, rank: u32, during: &RankWait) -> Within {
        let Some(waits) = self.waits.get(&rank) else { return Within::Nobody };
        let first = waits.partition_point(|wait| wait.end <= during.begin);
        let within = waits[first..].iter().take_while(|wait| wait.begin < during.end);
        let mut by_whom: BTreeMap<u32, WaitsForOne> = BTreeMap::new();
        for wait in within {
            let (begin, end) = (wait.begin.max(during.begin), wait.end.min(during.end));
            let cut = RankWait { begin, end, ..*wait };
            let known = by_whom.entry(wait.whom).or_insert(WaitsForOne::none(cut));
            known.add(cut);
        }
        let is_most = |ns: i64| ns * 2 >= during.end - during.begin;
        let all = by_whom.values().map(|waits| waits.ns).sum();
        match by_whom.into_values().max_by_key(|waits| waits.ns) {
            Some(waits) if is_most(waits.ns) => Within::One(waits.as_one()),
            Some(_) if is_most(all) => Within::Several,
            _ => Within::Nobody,
        }
    }
}

/// What a rank did during another's wait: mostly wait for one rank, or for several one after the other.
enum Within {
    One(RankWait),
    Several,
    Nobody,
}

/// Waits of one rank for one other.
struct WaitsForOne {
    longest: RankWait,
    begin: i64,
    end: i64,
    ns: i64,
    outside_ns: i64,
}

impl WaitsForOne {
    fn none(first: RankWait) -> WaitsForOne {
        let RankWait { begin, end, .. } = first;
        WaitsForOne { longest: first, begin, end, ns: 0, outside_ns: 0 }
    }

    fn add(&mut self, wait: RankWait) {
        let ns = wait.end - wait.begin;
        if ns > self.longest.end - self.longest.begin {
            self.longest = wait;
        }
        self.end = self.end.max(wait.end);
        self.ns += ns;
        self.outside_ns += if wait.is_outside { ns } else { 0 };
    }

    /// From the first to the last of them, by the longest.
    fn as_one(&self) -> RankWait {
        let is_outside = self.outside_ns * 2 >= self.ns;
        RankWait { begin: self.begin, end: self.end, is_outside, ..self.longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(begin: i64, end: i64, whom: u32) -> RankWait {
        let (by, awaited) = (SiteId::default(), SiteId::default());
        RankWait { begin, end, by, whom, awaited, is_outside: false }
    }

    /// Rank 0 waits for rank 1, which waits as `inner` says; rank 2 is outside MPI and waits for nobody.
    fn began(inner: Vec<RankWait>) -> Vec<(Doing, u32)> {
        let mut waits = BTreeMap::from([(0, vec![wait(0, 100, 1)]), (1, inner)]);
        waits.insert(2, Vec::new());
        let origins = Chains::new(&waits).origins();
        let of_first = origins.values().flatten().filter(|(_, &ns)| ns == 100);
        of_first.map(|(origin, _)| (origin.doing, origin.rank)).collect()
    }

    #[test]
    fn many_short_waits_for_one_rank_are_a_wait_for_it() {
        let outside = |begin, end| RankWait { is_outside: true, ..wait(begin, end, 2) };
        let many = (0..10).map(|number| outside(10 * number, 10 * number + 8)).collect();
        assert_eq!(began(many), [(Doing::Computing, 2)]);
    }

    #[test]
    fn waits_for_one_rank_after_the_other_are_said_to_be_that() {
        let several = vec![wait(0, 30, 2), wait(30, 60, 3), wait(60, 90, 4)];
        assert_eq!(began(several), [(Doing::WaitingForSeveral, 1)]);
        assert_eq!(began(vec![wait(0, 10, 2)]), [(Doing::InMpi, 1)]);
    }
}
