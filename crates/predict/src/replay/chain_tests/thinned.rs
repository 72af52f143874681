//! Collectives that are left out.

use rustc_hash::FxHashSet;

use super::*;
use crate::replay::thinned::{is_blocking_collective, thin, Thinning};

const LONG: i64 = 1_000;
const SHORT: i64 = 10;
const BARRIER: i64 = 30;

/// Two ranks take turns to compute for long, with a barrier behind each turn.
fn turns() -> Trace {
    let mut run = MadeUp::new(2);
    for turn in 0..4 {
        for rank in 0..2 {
            run.compute(rank, if turn % 2 == rank { LONG } else { SHORT });
        }
        run.collective("MPI_Barrier", 1, 0, BARRIER);
    }
    run.finish()
}

/// The run time with each so-many-th barrier, and how many barriers there are and are left out.
fn with_every(trace: &Trace, every: Option<u64>) -> (i64, u64, u64) {
    let program = Program::new(trace);
    let operations = trace.ranks[0].operations.iter();
    let sites: FxHashSet<SiteId> =
        operations.filter(|it| is_blocking_collective(it)).map(|it| it.site).collect();
    let thinned = thin(trace, &program, &Thinning { sites: &sites, every });
    assert_eq!(thinned.unknown, 0);
    let durations = Durations::measure(trace);
    let conditions = Conditions::as_recorded(2);
    let outcome = replay(trace, &thinned.program, &network(64), &conditions, &durations);
    for rank in &outcome.ranks {
        assert!(rank.posted.iter().all(|&posted| posted != i64::MAX), "{outcome:?}");
        assert!(rank.calls.iter().all(|call| call.begin != i64::MAX), "{outcome:?}");
    }
    (outcome.run_ns(trace).expect("it ends"), thinned.collectives, thinned.left_out)
}

#[test]
fn without_barriers_turns_go_side_by_side() {
    let trace = turns();
    let (as_it_was, _, none) = with_every(&trace, Some(1));
    let (without, all, left_out) = with_every(&trace, None);
    assert_eq!((none, all, left_out), (0, 4, 4));
    // all that differs is what the barriers took, and that both ranks compute at once
    assert_eq!(as_it_was - without, 4 * (LONG + BARRIER) - 2 * (LONG + SHORT));
    let (half, _, left_out) = with_every(&trace, Some(2));
    assert_eq!(left_out, 2);
    assert_eq!(half - without, 2 * BARRIER);
}
