//! Collectives that a program no longer makes, or makes each K-th time: what stands before and behind them stays as it is.
//!
//! A collective is left out for all its members, from wherever they call it. Which ones, is counted in each communicator apart, in the
//! order in which its members call them.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::nonblocking::collective;
use super::program::{Action, Program, RankProgram, Step, ThreadProgram};
use lapscope_data::places::SiteId;
use lapscope_trace::{CommKey, Direction, Operation, RankTrace, Trace};

/// Collectives of these call sites, of which each `every`-th is made; `None`: none is.
#[derive(Debug, Clone)]
pub struct Thinning<'a> {
    pub sites: &'a FxHashSet<SiteId>,
    pub every: Option<u64>,
}

/// A program with fewer collectives.
#[derive(Debug)]
pub struct Thinned {
    pub program: Program,
    /// Collectives there, and how many of them are left out.
    pub collectives: u64,
    pub left_out: u64,
    /// Calls there whose other members are not known: they stay.
    pub unknown: u64,
}

/// Whether an operation is a blocking collective.
pub fn is_blocking_collective(operation: &Operation) -> bool {
    operation.direction == Direction::Collective && !operation.is_request
}

pub fn thin(trace: &Trace, program: &Program, thinning: &Thinning<'_>) -> Thinned {
    let mut meetings: BTreeMap<CommKey, BTreeSet<(u32, u32)>> = BTreeMap::new();
    let mut unknown = 0;
    for (place, rank) in trace.ranks.iter().enumerate() {
        for (index, row) in rank.endpoints.iter().enumerate() {
            let operation = &rank.operations[row.operation as usize];
            if !thinning.sites.contains(&operation.site) || !is_blocking_collective(operation) {
                continue;
            }
            let is_known = super::replayed::is_replayed(trace, row, operation);
            match trace.meeting_of(&trace.half(place, index)).filter(|_| is_known) {
                Some((key, number, _)) => {
                    meetings.entry(key).or_default().insert((number, row.partner));
                }
                None => unknown += 1,
            }
        }
    }
    let is_left_out =
        |number: usize| thinning.every.map_or(true, |every| (number as u64 + 1) % every != 0);
    let left_out: FxHashSet<u32> = meetings
        .values()
        .flat_map(|of_comm| of_comm.iter().enumerate())
        .filter(|(number, _)| is_left_out(*number))
        .map(|(_, &(_, collective))| collective)
        .collect();
    let rank = |(rank, of_trace): (&RankProgram, &RankTrace)| {
        let step = |step: &Step| without(trace, of_trace, rank, step, &left_out);
        let thread = |thread: &ThreadProgram| {
            let steps = thread.steps.iter().map(step).collect();
            ThreadProgram { steps, ..thread.clone() }
        };
        let mut thinned = rank.clone();
        thinned.threads = rank.threads.iter().map(thread).collect();
        thinned
    };
    let ranks = program.ranks.par_iter().zip(&trace.ranks).map(rank).collect();
    Thinned {
        program: Program { ranks, overhead: program.overhead, is_whole: program.is_whole },
        collectives: meetings.values().map(|of_comm| of_comm.len() as u64).sum(),
        left_out: left_out.len() as u64,
        unknown,
    }
}

/// The step, or the computation before it alone.
fn without(
    trace: &Trace,
    of_trace: &RankTrace,
    rank: &RankProgram,
    step: &Step,
    left_out: &FxHashSet<u32>,
) -> Step {
    let is_out = |place: u32| {
        let mut endpoints = rank.endpoints_of(of_trace, place);
        endpoints.any(|it| left_out.contains(&of_trace.endpoints[it as usize].partner))
    };
    match collective(trace, of_trace, rank, step) {
        Some((place, _)) if is_out(place) => Step::new(step.gap.or_zero(), Action::Never(place), 0),
        _ => *step,
    }
}
