//! What calls that post take, and how much of that they stood until their receiver came.

use super::super::finding::Finding;
use super::super::sums::join_ranges;
use super::Gatherer;
use lapscope_measure::overlap::exposure::{BesideGpu, Exposure, ExposureBounds};
use lapscope_measure::overlap::witness::{Awaited, Waited};
use lapscope_trace::target::VISIBLE;
use lapscope_trace::{Direction, Half};

impl Gatherer<'_> {
    pub(super) fn add_posts(&mut self) {
        let trace = self.trace;
        let rank = &trace.ranks[self.rank];
        let mut by_operation = vec![(0i64, 0u64); rank.operations.len()];
        for (index, endpoint) in rank.endpoints.iter().enumerate() {
            if !self.trace.is_endpoint_counted(self.rank, index) {
                continue;
            }
            let operation = &rank.operations[endpoint.operation as usize];
            let may_wait = operation.is_request
                && operation.direction == Direction::Send
                && endpoint.post.or_zero() >= VISIBLE;
            let waited = if may_wait { self.add_post(index) } else { 0 };
            let post_end = endpoint.begin + endpoint.post.or_zero();
            let beside_gpu = rank.devices.computed_within(endpoint.begin, post_end);
            let (ns, calls) = &mut by_operation[endpoint.operation as usize];
            *ns += (endpoint.post.or_zero() - waited - beside_gpu).max(0);
            *calls += 1;
        }
        for (operation, (ns, calls)) in rank.operations.iter().zip(by_operation) {
            if !operation.is_request || calls == 0 {
                continue;
            }
            let site = operation.site;
            let sums = self.gathered.findings.entry(Finding::Posts(site)).or_default();
            sums.posting += ns;
            sums.calls += calls;
            sums.bytes = join_ranges(sums.bytes, Some((operation.bytes.0, operation.bytes.0)));
            *sums.waiting.entry(site).or_default() += ns;
            *sums.ranks.entry(self.rank as u32).or_default() += ns;
            *sums.change_ranks.entry(self.rank as u32).or_default() += ns;
            sums.collective |= operation.direction == Direction::Collective;
            sums.sends |= operation.direction == Direction::Send;
        }
    }

    /// What the post of a send stood until its receiver came, whatever a limit says; nanoseconds.
    fn add_post(&mut self, index: usize) -> i64 {
        let half = blocked(self.trace.half(self.rank, index));
        let operation = half.operation;
        let Some(partner) = self.trace.partner(&half) else { return 0 };
        let next = |from| self.trace.next_inside(&partner, from);
        let Some(came) = self.trace.waited_until(&half, next) else { return 0 };
        let late_partner = (came.min(partner.post_begin) - half.post_begin).max(0);
        let no_remote_progress = came - half.post_begin - late_partner;
        let mut exposed = Exposure { late_partner, no_remote_progress, ..Exposure::default() };
        let posted = half.post_begin + late_partner;
        let gpus = &self.trace.ranks[self.rank].devices;
        exposed.lay_to_gpu(BesideGpu {
            late: gpus.computed_within(half.post_begin, posted),
            outside: gpus.computed_within(posted, came),
            rest: 0,
        });
        let waited = Waited {
            half,
            at: Some(operation.site),
            awaited: Awaited::Partner(partner),
            exposed,
            bounds: ExposureBounds::exactly(exposed),
            compute: 0,
            transfer: 0,
        };
        *self.gathered.waited.entry(self.rank as u32).or_default() += exposed.total();
        let bookings = [self.late(&waited, operation.site), self.outside(&waited, operation.site)];
        for booking in bookings.into_iter().flatten() {
            self.book(&booking, &waited, operation.site, true);
        }
        exposed.total()
    }
}

/// A send as if the call that posted it had blocked.
fn blocked(mut half: Half<'_>) -> Half<'_> {
    (half.completion_begin, half.completion_end) = (Some(half.post_begin), Some(half.post_end));
    half.post_end = half.post_begin;
    (half.completed_together, half.call) = (1, None);
    half
}

/// Whether the call that posts is what waited.
pub(super) fn is_of(half: &Half<'_>) -> bool {
    half.operation.is_request && half.call.is_none()
}
