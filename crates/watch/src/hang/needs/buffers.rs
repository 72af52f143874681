//! What MPI_Buffer_detach waits for: that buffered messages are received (MPI-4.1 3.6). Which of those that nobody has received yet
//! are in the buffer is not recorded, so that it is a perhaps of each.

use super::{Builder, Reason, WaitNeed, Why};
use crate::hang::graph::{Need, Target};
use crate::hang::job::OpenAt;

impl Builder<'_> {
    /// For each rank that has not received what was sent to it.
    pub(super) fn taken(&self, place: OpenAt) -> Vec<WaitNeed> {
        let own = self.job.rank(place.0).rank;
        let why = Why { reason: Reason::Taken, place };
        let lanes = self.messages.unmatched_from(own);
        let mut receivers: Vec<usize> =
            lanes.filter_map(|(key, _)| self.job.find(own.neighbor(key.receiver))).collect();
        receivers.sort_unstable();
        receivers.dedup();
        let need = |at| Need { target: Target::Rank(at), is_sure: false, why };
        receivers.into_iter().map(need).collect()
    }
}
