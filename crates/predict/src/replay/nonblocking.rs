//! Blocking collectives taken apart: begun where they are, and waited for at the next call of MPI of their thread. Hoefler and
//! others, a case for non-blocking collectives.
//!
//! What the processor does of a collective stays where it is; only the network's part can be overlapped. Nobody says that the
//! program could go on without the result until its next call of MPI: so this is the most that can be gained.

use rayon::prelude::*;

use super::program::{Action, Program, RankProgram, Step, ThreadProgram};
use lapscope_measure::loggps::collective::{predict, Costs, Shape};
use lapscope_trace::{Direction, Operation, RankTrace, Trace};

/// A program whose blocking collectives are begun and finished apart, and how many these are.
pub fn apart(trace: &Trace, program: &Program, copy_per_byte: f64) -> (Program, u64) {
    let costs = Costs {
        latency_ns: 0.0,
        overheads_ns: 2.0 * program.overhead as f64,
        gap_ns_per_byte: 0.0,
        reduction_ns_per_byte: copy_per_byte,
    };
    let rank = |(rank, of_trace): (&RankProgram, &RankTrace)| {
        let apart = |thread: &ThreadProgram| thread_apart(trace, of_trace, rank, thread, &costs);
        let (threads, counts): (Vec<_>, Vec<u64>) = rank.threads.iter().map(apart).unzip();
        let mut changed = rank.clone();
        changed.threads = threads;
        (changed, counts.iter().sum::<u64>())
    };
    let ranks: Vec<(RankProgram, u64)> =
        program.ranks.par_iter().zip(&trace.ranks).map(rank).collect();
    let count = ranks.iter().map(|(_, count)| count).sum();
    let ranks = ranks.into_iter().map(|(rank, _)| rank).collect();
    (Program { ranks, overhead: program.overhead, is_whole: program.is_whole }, count)
}

fn thread_apart(
    trace: &Trace,
    of_trace: &RankTrace,
    rank: &RankProgram,
    thread: &ThreadProgram,
    costs: &Costs,
) -> (ThreadProgram, u64) {
    let mut steps: Vec<Step> = Vec::with_capacity(thread.steps.len());
    let mut polls = thread.polls.iter().peekable();
    let mut moved_polls = Vec::new();
    let mut begun: Option<u32> = None;
    let mut count = 0;
    for (index, step) in (0u32..).zip(&thread.steps) {
        while let Some(&&(at, period)) = polls.peek().filter(|poll| poll.0 <= index) {
            if at == index {
                moved_polls.push((steps.len() as u32, period));
            }
            polls.next();
        }
        let mut gap = step.gap.or_zero();
        if let Some(place) = begun.take() {
            steps.push(Step::new(gap, Action::Finish(place), 0));
            gap = 0;
        }
        match collective(trace, of_trace, rank, step) {
            Some((place, operation)) => {
                let own = processor(trace, operation, costs).min(step.cost.or_zero().max(1));
                steps.push(Step::new(gap, Action::Start(place), own));
                begun = Some(place);
                count += 1;
            }
            None => steps
                .push(Step::new(gap, step.action(), step.cost.or_zero()).late(step.late.or_zero())),
        }
    }
    let mut rest = thread.rest;
    if let Some(place) = begun {
        steps.push(Step::new(rest, Action::Finish(place), 0));
        rest = 0;
    }
    (ThreadProgram { steps, rest, polls: moved_polls }, count)
}

/// The place and the operation of a step that is a blocking collective of which the replay knows whom it needs.
pub(super) fn collective<'a>(
    trace: &Trace,
    of_trace: &'a RankTrace,
    rank: &RankProgram,
    step: &Step,
) -> Option<(u32, &'a Operation)> {
    let Action::Call(place) = step.action() else { return None };
    let endpoint = rank.endpoints_of(of_trace, place).next()?;
    let row = &of_trace.endpoints[endpoint as usize];
    let operation = &of_trace.operations[row.operation as usize];
    let is_one = operation.direction == Direction::Collective
        && !operation.is_request
        && super::replayed::is_replayed(trace, row, operation);
    is_one.then_some((place, operation))
}

/// What of a collective is the processor's, nanoseconds.
fn processor(trace: &Trace, operation: &Operation, costs: &Costs) -> i64 {
    let bytes = operation.bytes.0;
    let shape = match trace.blocking_calls[operation.blocking_call as usize].name.as_str() {
        "MPI_Barrier" => Shape::Barrier,
        "MPI_Bcast" | "MPI_Scatter" | "MPI_Gather" => Shape::Broadcast { bytes },
        _ => Shape::Allreduce { bytes },
    };
    predict(shape, u64::from(operation.comm_size), costs).processor_ns.round() as i64
}
