//! Loops of tests that wait: `while (!done) MPI_Test(...)`. Their tests find nothing until the request is complete, so what these
//! took is laid to causes as the time of a call that blocks from the first of them on.

use super::super::sums::BlockingSums;
use super::super::waited::WaitingCall;
use super::Walk;
use crate::overlap::exposure::{Exposure, ExposureBounds};
use crate::overlap::witness::{Waited, Witness};
use lapscope_trace::stats::in_proportion;
use lapscope_trace::{Call, Half};

impl<W: Witness> Walk<'_, W> {
    /// Of several threads it is not known whose tests they were.
    pub(super) fn add_polled(&mut self, members: &[u32], call: Call) {
        let rank = &self.trace.ranks[self.rank];
        if rank.threads.count() != 1 || !call.returned() {
            return;
        }
        let endpoints = members.iter().map(|&index| &rank.endpoints[index as usize]);
        let Some(since) = endpoints.filter_map(|endpoint| rank.polled_since(endpoint)).min() else {
            return;
        };
        let begin = since.max(std::mem::replace(&mut self.polled_until, call.begin));
        self.add_waiting_loop(begin, call.begin);
        let in_tests =
            |&index: &u32| self.trace.half(self.rank, index as usize).in_tests(&rank.presence);
        let all = members.iter().map(in_tests).max().unwrap_or(0);
        let part = (call.begin - begin).max(0);
        let ns = in_proportion(all, part, (call.begin - since).max(1));
        if ns <= 0 {
            return;
        }
        let mut group = WaitingCall::new(begin, call.begin + call.duration);
        let mut sums = BlockingSums { calls: 1, ..BlockingSums::default() };
        for &index in members {
            let half = self.trace.half(self.rank, index as usize);
            let transfer = self.places[self.operation_of(index as usize)].transfer;
            let side = self.sides.other(&half);
            let posted = side.as_ref().map_or(half.post_end, |side| side.posted);
            sums.bytes = sums.bytes.saturating_add(half.bytes().0);
            group.add(&half, transfer, self.ready_compute(&wait_from(half, begin, all), posted));
            group.offer(self.sides, &half, side);
        }
        let lasted = group.wait.end - group.wait.begin;
        let (waited, blamed) = self.lay(group);
        let of_tests = |of: Exposure| of.map(|cause| in_proportion(cause, ns, lasted.max(1)));
        let ExposureBounds { least, most } = waited.bounds;
        let bounds = ExposureBounds { least: of_tests(least), most: of_tests(most) };
        sums.exposed = of_tests(waited.exposed);
        let beside = sums.exposed.beside_gpu;
        sums.exposed.transfer += (ns - beside - sums.exposed.total()).max(0); // what did not divide
        self.blame(blamed, &sums.exposed);
        let half = wait_from(waited.half, begin, all);
        self.witness.polled(&Waited { half, exposed: sums.exposed, bounds, ..waited });
        self.add_polling(&sums, call.operation);
    }
}

impl<W: Witness> Walk<'_, W> {
    /// `test`: the operation that is tests.
    pub(super) fn add_polling(&mut self, sums: &BlockingSums, test: u32) {
        self.found.polling += sums;
        let site = self.trace.ranks[self.rank].operations[test as usize].site;
        *self.found.polled_beside_gpu.entry(site).or_default() += sums.exposed.beside_gpu;
    }

    /// A loop that waited from then to then. Nothing between its tests is computation.
    pub(super) fn add_waiting_loop(&mut self, begin: i64, end: i64) {
        let lasted = self.trace.ranks[self.rank].presence.outside(begin, end);
        self.found.waiting_loops = self.found.waiting_loops.saturating_add(lasted);
        self.witness.looped(begin, lasted);
    }
}

impl<'a, W: Witness> Walk<'a, W> {
    /// A request that a loop of tests waited for, as if a call that blocks had from the first of them on: what passes between
    /// them is no computation; and whether that is so.
    pub(super) fn before_loop(&self, half: Half<'a>) -> (Half<'a>, bool) {
        let rank = &self.trace.ranks[self.rank];
        let since = rank.polled_since(&rank.endpoints[half.index]);
        match since.filter(|_| rank.threads.count() == 1) {
            Some(since) => (wait_from(half, since, half.in_tests(&rank.presence)), true),
            None => (half, false),
        }
    }
}

/// The half as if its completing call had begun with the loop, whose tests took so long.
fn wait_from(mut half: Half<'_>, begin: i64, in_tests: i64) -> Half<'_> {
    half.completion_begin = Some(begin.max(half.post_end));
    half.mpi = half.mpi.map(|mpi| (mpi - in_tests).max(0));
    half
}
