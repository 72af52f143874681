//! Blocking collectives begun in one place and waited for in another.

use super::*;
use crate::replay::nonblocking::apart;
use lapscope_trace::Span;

/// Two barriers with 500 ns of computation in between: that hides the 300 ns of the first, not the 1000 ns for which the first rank
/// waits for the second, and not the 20 ns that the processor itself needs to begin it.
#[test]
fn the_network_goes_on_while_ranks_compute() {
    let mut run = MadeUp::new(2);
    run.compute(1, 1_000);
    run.collective("MPI_Barrier", 1, 0, 300);
    for rank in 0..2 {
        run.compute(rank, 500);
    }
    run.collective("MPI_Barrier", 2, 0, 300);
    let trace = run.finish();
    let mut program = Program::new(&trace);
    for step in program.ranks.iter_mut().flat_map(|rank| &mut rank.threads[0].steps) {
        step.cost = Span::new(20);
    }
    let durations = Durations::measure(&trace);
    let conditions = Conditions::as_recorded(2);
    let run_of = |program: &Program| {
        let outcome = replay(&trace, program, &network(64), &conditions, &durations);
        outcome.run_ns(&trace).expect("it ends")
    };
    let (begun, count) = apart(&trace, &program, 0.1);
    assert_eq!(count, 4);
    assert_eq!((run_of(&program), run_of(&begun)), (2_100, 1_820));
}
