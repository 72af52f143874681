//! Injected tests taken out of the computation.

use super::*;
use crate::replay::injected::{split, Injected};

/// Computation of 1000 ns with a request pending, and of 500 ns without: four tests that took 100 ns were in the first.
#[test]
fn tests_were_where_requests_were_pending() {
    let mut run = MadeUp::new(2);
    run.compute(0, 500);
    let send = run.isend(0, 1, 1, 64, 10);
    run.compute(0, 1_000);
    run.wait(0, 2, &[send]);
    run.compute(0, 10);
    run.receive(1, 3, 0, 64);
    let trace = run.finish();
    let program = Program::new(&trace);
    let sites = trace.ranks[0].operations.iter().map(|operation| operation.site).collect();
    let injected = [Injected { sites, tests: 4, ns: 100 }, Injected::default()];
    let split = split(&trace, &program, &injected);
    let gaps = |program: &Program| -> Vec<i64> {
        program.ranks[0].threads[0].steps.iter().map(|step| step.gap.or_zero()).collect()
    };
    assert_eq!((gaps(&split.with), gaps(&split.without)), (vec![500, 1_000], vec![500, 900]));
    assert_eq!(split.with.ranks[0].threads[0].polls, [(1, 250)]);
    assert!(split.without.ranks[0].threads[0].polls.is_empty() && split.ns == 100);
}
