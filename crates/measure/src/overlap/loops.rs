//! Loops of tests that a rank may have waited in. What passes between two tests is no time of any call: whether a program computed
//! there or waited is told by how far apart they were, and by how long the rank slept.

use serde::Serialize;

use super::groups::NamedSites;
use super::measured::Measured;
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::symbols::FrameName;
use lapscope_trace::{RankTrace, Trace};

/// Less than this part of what its loops lasted a rank must have slept, one in so many, to be believed to have waited in them.
const ASLEEP: i64 = 2;
/// Gaps of which the longest is more than so many times the shortest are long now and short then, as work is.
const LIKE_WORK: i64 = 4;

/// A rank that waited in a loop of tests: `while (!done) { MPI_Test(...); usleep(...); }`.
#[derive(Debug, Clone, Serialize)]
pub struct TestLoop {
    /// The test.
    pub call: String,
    pub site: Option<FrameName>,
    pub rank: Rank,
    pub loops: u64,
    pub unsuccessful_tests: u64,
    /// From the first test of each loop to the one that completed it: it waited so long at most.
    pub span_ns: Nanos,
    /// It slept at least so long in loops of tests, wherever they are; `None`: the tests followed each other at once.
    pub asleep_low_ns: Option<Nanos>,
    /// Of `span_ns`, before the other side had posted.
    pub late_partner_ns: Nanos,
    /// From one test to the next, in the loop with the shortest gaps and in that with the longest.
    pub apart_low_ns: Nanos,
    pub apart_high_ns: Nanos,
}

/// Ranks and places of loops that cannot have been work, the longest first.
pub(super) fn rows(
    trace: &Trace,
    measured: &Measured,
    named: &mut NamedSites<'_>,
) -> Vec<TestLoop> {
    let mut rows = Vec::new();
    for (&(place, site), sums) in &measured.loops {
        let Some((low, high)) = sums.apart else { continue };
        let rank = &trace.ranks[place as usize];
        let is_tight = sums.tight * 2 >= sums.span;
        let asleep = (!is_tight).then(|| asleep(rank, in_loops(measured, place)));
        let is_wait = match asleep {
            None => true,
            Some((asleep, span)) => {
                asleep * ASLEEP >= span && high <= low.saturating_mul(LIKE_WORK)
            }
        };
        if !is_wait {
            continue;
        }
        rows.push(TestLoop {
            call: named.call(site),
            site: named.name(site),
            rank: rank.info().rank,
            loops: sums.loops,
            unsuccessful_tests: sums.tests,
            span_ns: Nanos(sums.span),
            asleep_low_ns: asleep.map(|(asleep, _)| Nanos(asleep)),
            late_partner_ns: Nanos(sums.late),
            apart_low_ns: Nanos(low),
            apart_high_ns: Nanos(high),
        });
    }
    rows.sort_by(|a, b| b.span_ns.cmp(&a.span_ns).then_with(|| a.rank.cmp(&b.rank)));
    rows
}

/// How long all loops of a rank lasted.
fn in_loops(measured: &Measured, place: u32) -> i64 {
    let of_rank = measured.loops.iter().filter(|((rank, _), _)| *rank == place);
    of_rank.map(|(_, sums)| sums.span).fold(0, i64::saturating_add)
}

/// How long a rank slept at least in loops that lasted so long, and how long they lasted: all that it slept, less all that passed
/// outside of them.
fn asleep(rank: &RankTrace, span: i64) -> (i64, i64) {
    let slept = rank.info().processor.map_or(0, |it| {
        let run_time = rank.info().run_time().0;
        (run_time - it.run.0 - it.wait.0) - (run_time - span)
    });
    (slept.clamp(0, span), span)
}
