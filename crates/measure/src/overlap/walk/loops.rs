//! Finds loops of tests of which nothing says yet whether they waited: [`super::super::loops`].

use super::super::cells::LoopSums;
use super::Walk;
use crate::overlap::witness::Witness;
use lapscope_trace::Call;

/// A loop has at least so many tests that find nothing.
const LOOP: u64 = 4;

impl<W: Witness> Walk<'_, W> {
    /// Of several threads it is not known whose tests they were; with another call between them the rank did something else.
    pub(super) fn add_loop(&mut self, members: &[u32], call: Call) {
        let rank = &self.trace.ranks[self.rank];
        if rank.threads.count() != 1 || !call.returned() {
            return;
        }
        let mut looped: Option<(i64, u64)> = None;
        let mut posted = None;
        let mut is_tight = false;
        for &index in members {
            let half = self.trace.half(self.rank, index as usize);
            let seen = half.observed.filter(|seen| seen.unsuccessful_tests >= LOOP);
            let seen = seen.filter(|_| half.operation.is_tested);
            let Some(first) = seen.and_then(|seen| seen.first_unsuccessful_test) else { continue };
            let since = half.post_begin + first;
            let tests = seen.map_or(0, |seen| seen.unsuccessful_tests);
            let (begin, most) = looped.unwrap_or((since, tests));
            looped = Some((begin.min(since), most.max(tests)));
            posted = posted.max(self.sides.other(&half).map(|side| side.posted));
            is_tight |= rank.polled_since(&rank.endpoints[index as usize]).is_some();
        }
        let Some((since, tests)) = looped.filter(|(since, _)| *since >= self.looped_until) else {
            return;
        };
        let span = call.begin - since;
        if span <= 0 || rank.presence.outside(since, call.begin) < span {
            return;
        }
        self.looped_until = call.begin;
        let apart = (span - rank.starvation.within(since, call.begin)) / tests.max(1) as i64;
        let site = rank.operations[call.operation as usize].site;
        *self.found.loops.entry(site).or_default() += &LoopSums {
            loops: 1,
            tests,
            span,
            late: posted.map_or(0, |posted| (posted - since).clamp(0, span)),
            tight: if is_tight { span } else { 0 },
            apart: Some((apart, apart)),
        };
    }
}
