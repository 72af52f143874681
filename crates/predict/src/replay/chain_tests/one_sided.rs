//! One-sided calls whose targets compute.

use super::{network, EAGER};
use crate::replay::scenario::Progress;
use crate::replay::{replay, Conditions, Durations, Network, Program};
use lapscope_trace::made_up::MadeUp;
use lapscope_trace::target::{Awaited, CallNumber};

const COMPUTATION: i64 = 20_000;
/// What a call takes from when its target is there.
const REST: i64 = 3_000;

/// How long a call takes that needs rank 1, or its only call, before which that computes.
fn takes(call: Option<CallNumber>, progress: Progress) -> i64 {
    let mut run = MadeUp::new(2);
    let awaited = Awaited { rank: 1, call, rest: REST };
    run.one_sided(0, 1, awaited, COMPUTATION + REST);
    run.compute(0, 50);
    run.compute(1, COMPUTATION);
    run.other(1, 2, 400);
    let trace = run.finish();
    let (program, durations) = (Program::new(&trace), Durations::measure(&trace));
    let network = Network { progress, ..network(EAGER) };
    let outcome = replay(&trace, &program, &network, &Conditions::as_recorded(2), &durations);
    assert!(outcome.stuck.is_empty(), "{:?}", outcome.stuck);
    outcome.ranks[0].calls[0].duration.or_zero()
}

#[test]
fn a_call_ends_when_its_target_is_there() {
    assert_eq!(takes(None, Progress::Inside), COMPUTATION + REST);
    assert_eq!(takes(None, Progress::Every(1_000.0)), 1_000 + REST);
    assert_eq!(takes(None, Progress::Async), REST);
}

#[test]
fn no_progress_makes_the_calls_of_others() {
    for progress in [Progress::Inside, Progress::Every(1_000.0), Progress::Async] {
        assert_eq!(takes(Some(0), progress), COMPUTATION + REST);
    }
}
