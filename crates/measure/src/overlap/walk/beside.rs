//! Waits of one of several threads. While another thread of the rank calls MPI and works between its calls, a thread that listens for
//! messages costs nothing: what the rank waits for is what that other one waits for.

use super::Walk;
use crate::overlap::witness::Witness;
use lapscope_trace::RankTrace;

/// When calls and posts of a rank with several threads began, in order; empty of others.
pub(super) fn begins(rank: &RankTrace) -> Vec<i64> {
    if rank.threads.count() == 1 {
        return Vec::new();
    }
    let posts = rank.endpoints.iter().map(|endpoint| endpoint.begin);
    let mut begins: Vec<i64> = posts.chain(rank.calls.iter().map(|call| call.begin)).collect();
    begins.sort_unstable();
    begins
}

impl<W: Witness> Walk<'_, W> {
    /// Whether for most of a call others of its rank began and ended: a thread calls one after the other, so that these were of other
    /// threads, which went on.
    pub(super) fn is_beside_others(&self, begin: i64, end: i64) -> bool {
        let first = self.begins.partition_point(|&other| other <= begin);
        let last = self.begins.partition_point(|&other| other < end);
        let within = &self.begins[first..last.max(first)];
        let span = within.first().zip(within.last()).map_or(0, |(first, last)| last - first);
        span * 2 >= end - begin && span > 0
    }
}
