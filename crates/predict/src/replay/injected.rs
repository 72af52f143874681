//! Tests that lapscope injected, told apart from the computation in which they were made.
//!
//! The record knows how many there were at each call site and what they took, not when each was. So they are spread over the
//! computation in which requests of these sites were pending, by its length.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::program::{Action, Program, RankProgram, ThreadProgram};
use lapscope_data::places::SiteId;
use lapscope_trace::injected::FileInjection;
use lapscope_trace::{RankTrace, Span, Trace};

/// What was injected on one rank.
#[derive(Debug, Clone, Default)]
pub struct Injected {
    /// Call sites whose pending requests were tested for.
    pub sites: FxHashSet<SiteId>,
    pub tests: u64,
    /// What tests and interrupts took of the computation, nanoseconds; 0 where they were on a thread of their own.
    pub ns: i64,
}

impl Injected {
    /// What files say, in the order of the trace's ranks; `None`: nothing was injected.
    pub fn of_files(files: &[FileInjection], trace: &Trace) -> Option<Vec<Injected>> {
        let mut injected = vec![Injected::default(); trace.ranks.len()];
        for file in files {
            for row in file.rows.iter().filter(|row| row.is_on) {
                let is_beside =
                    file.ranks.iter().any(|rank| rank.rank == row.rank && rank.mode == "thread");
                let ranks = trace.ranks.iter().zip(&mut injected);
                for (_, injected) in ranks.filter(|(rank, _)| rank.info().rank == row.rank) {
                    injected.sites.insert(row.at.0);
                    injected.tests += row.tests.tests;
                    if !is_beside {
                        injected.ns += row.tests.test_ns.0 + row.tests.interrupt_ns.0;
                    }
                }
            }
        }
        injected.iter().any(|rank| rank.tests > 0).then_some(injected)
    }
}

/// A run with its injected tests, and the same without them.
#[derive(Debug)]
pub struct Split {
    /// Tests at the distances at which they were made; computation as it was recorded.
    pub with: Program,
    /// Computation without what they took.
    pub without: Program,
    /// What was taken out, nanoseconds, of all ranks.
    pub ns: i64,
}

/// Takes the injected tests out of a program; `injected` by rank.
pub fn split(trace: &Trace, program: &Program, injected: &[Injected]) -> Split {
    let rank = |((of_rank, of_trace), injected): ((&RankProgram, &RankTrace), &Injected)| {
        rank_split(of_trace, of_rank, injected)
    };
    let ranks = program.ranks.par_iter().zip(&trace.ranks).zip(injected).map(rank);
    let ranks: Vec<(RankProgram, RankProgram, i64)> = ranks.collect();
    let empty =
        || Program { ranks: Vec::new(), overhead: program.overhead, is_whole: program.is_whole };
    let mut split = Split { with: empty(), without: empty(), ns: 0 };
    for (with, without, ns) in ranks {
        split.with.ranks.push(with);
        split.without.ranks.push(without);
        split.ns += ns;
    }
    split
}

fn rank_split(
    of_trace: &RankTrace,
    of_rank: &RankProgram,
    injected: &Injected,
) -> (RankProgram, RankProgram, i64) {
    let pending: Vec<Vec<u32>> = of_rank
        .threads
        .iter()
        .map(|thread| pending_steps(of_trace, of_rank, thread, &injected.sites))
        .collect();
    let gap = |(thread, steps): (&ThreadProgram, &Vec<u32>)| -> i64 {
        steps.iter().map(|&step| thread.steps[step as usize].gap.or_zero()).sum()
    };
    let computed: i64 = of_rank.threads.iter().zip(&pending).map(gap).sum();
    let (mut with, mut without) = (of_rank.clone(), of_rank.clone());
    if computed == 0 || injected.tests == 0 {
        return (with, without, 0);
    }
    let period = (computed / injected.tests as i64).max(1);
    let share = (injected.ns as f64 / computed as f64).min(1.0);
    let mut taken = 0;
    for (number, steps) in pending.iter().enumerate() {
        let polls = steps.iter().map(|&step| (step, period));
        with.threads[number].polls.extend(polls);
        with.threads[number].polls.sort_unstable();
        for &step in steps {
            let step = &mut without.threads[number].steps[step as usize];
            let ns = (step.gap.or_zero() as f64 * share).round() as i64;
            step.gap = Span::new(step.gap.or_zero() - ns);
            taken += ns;
        }
    }
    (with, without, taken)
}

/// Steps in front of which requests of these sites were pending while the thread computed.
fn pending_steps(
    of_trace: &RankTrace,
    of_rank: &RankProgram,
    thread: &ThreadProgram,
    sites: &FxHashSet<SiteId>,
) -> Vec<u32> {
    let is_meant = |endpoint: u32| {
        let operation = of_trace.endpoints[endpoint as usize].operation;
        let operation = &of_trace.operations[operation as usize];
        operation.is_request && sites.contains(&operation.site)
    };
    let mut pending = 0usize;
    let mut steps = Vec::new();
    for (index, step) in (0..).zip(&thread.steps) {
        if pending > 0 {
            steps.push(index);
        }
        match step.action() {
            Action::Post(endpoint) => pending += usize::from(is_meant(endpoint)),
            Action::Call(place) | Action::Loop(place) | Action::Finish(place) => {
                let completed = of_rank.endpoints_of(of_trace, place);
                pending = pending.saturating_sub(completed.filter(|&it| is_meant(it)).count());
            }
            Action::Start(_) | Action::Other(_) | Action::Never(_) => {}
        }
    }
    steps
}
