//! What a rank that somebody waited for did meanwhile.
//!
//! The last rank to come to a collective may be any rank of the run, so of a run in parts it is not in memory. What it
//! did before is therefore asked for in a stage of its own, and bounded: its latest visits to MPI, and when it had no
//! processor. A wait for it is explained by that in a run of two ranks as well. Of what lies before these visits
//! nothing is claimed.

use super::collective::Before;
use super::{Half, RankTrace, Trace};

/// All that is known of the rank; or, of the last to come to a collective, who may be any rank of the run, what it did shortly
/// before.
#[derive(Debug, Clone, Copy)]
pub enum Past<'a> {
    Rank(&'a RankTrace),
    Before(&'a Before),
}

impl Trace {
    /// The past of `rank`, which an endpoint waited for.
    #[inline]
    pub fn past(&self, half: &Half<'_>, rank: usize) -> Past<'_> {
        let is_last = self.collective(half).is_some_and(|it| it.last_rank as usize == rank);
        match self.before(half).filter(|_| is_last) {
            Some(before) => Past::Before(before),
            None => Past::Rank(&self.ranks[rank]),
        }
    }
}

impl Past<'_> {
    /// Nanoseconds of `begin..end` outside MPI, as far as is known.
    #[inline]
    pub fn outside(self, begin: i64, end: i64) -> i64 {
        match self {
            Past::Rank(rank) => rank.presence.outside(begin, end),
            Past::Before(before) => before.outside(begin, end),
        }
    }

    /// When it had left MPI last, before `moment`.
    #[inline]
    pub fn left_before(self, moment: i64) -> Option<i64> {
        match self {
            Past::Rank(rank) => rank.presence.left_before(moment),
            Past::Before(before) => before.left_before(moment),
        }
    }

    /// Nanoseconds of `begin..end` in which it could have run and did not, about.
    #[inline]
    pub fn starved_within(self, begin: i64, end: i64) -> i64 {
        match self {
            Past::Rank(rank) => rank.starvation.within(begin, end),
            Past::Before(before) => before.starved_within(begin, end),
        }
    }
}
