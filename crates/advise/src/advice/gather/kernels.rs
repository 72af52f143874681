//! Kernels that run next to a wait and not beside it: behind it, as if the wait need only come later, or before the post, as if that
//! need only come earlier. Whether the kernel needs the message, or makes it, no record tells.

use super::super::finding::Finding;
use super::{has_window, Booking, Gatherer};
use lapscope_data::places::SiteId;
use lapscope_measure::overlap::exposure::Exposure;
use lapscope_measure::overlap::witness::Waited;

/// Kernels behind the last wait, until the call of MPI after them: how much of them that wait was promised, nanoseconds.
#[derive(Debug, Default)]
pub(super) struct LastKernels {
    until: i64,
    promised: i64,
}

impl Gatherer<'_> {
    /// What of a wait could pass beside such kernels: while the partner is late, or the message moves. Where messages stand still
    /// tests are the cure. An earlier post ends no wait for a partner that comes late.
    pub(super) fn beside_kernels(
        &mut self,
        waited_for: &Waited<'_>,
        waiting: SiteId,
    ) -> Vec<Booking> {
        let rank = &self.trace.ranks[self.rank];
        let half = &waited_for.half;
        if rank.devices.lanes.is_empty() || rank.threads.count() > 1 || !has_window(half) {
            return Vec::new();
        }
        let Some(end) = half.completion_end else { return Vec::new() };
        let Exposure { late_partner, transfer, .. } = waited_for.exposed;
        let next = rank.presence.next(end + 1).unwrap_or(rank.end);
        let left = rank.presence.left_before(half.post_begin).unwrap_or(rank.init_end);
        let promised = if left < self.kernels.until { self.kernels.promised } else { 0 };
        let behind = Exposure { late_partner, transfer, ..Exposure::default() }
            .at_most(rank.devices.computed_within(end, next));
        let before = (rank.devices.computed_within(left, half.post_begin) - promised)
            .clamp(0, transfer - behind.transfer);
        let before = Exposure { transfer: before, ..Exposure::default() };
        self.kernels = LastKernels { until: next, promised: behind.total() };
        let findings = [
            (Finding::KernelsBehind(waiting), behind),
            (Finding::KernelsBefore(waiting, half.operation.site), before),
        ];
        let worth = findings.into_iter().filter(|(_, parts)| parts.total() > 0);
        worth.map(|(finding, parts)| self.own_booking(finding, waited_for, parts)).collect()
    }
}
