use super::*;
use crate::made_up::MadeUp;

/// Two ranks, out of MPI_Init at 100 and 300, that run for 1000 each.
fn run() -> Trace {
    let mut run = MadeUp::new(2);
    run.starts(0, 100);
    run.starts(1, 300);
    run.compute(0, 1_000);
    run.compute(1, 1_000);
    for (rank, init_end) in [(0, 100), (1, 300)] {
        let info = run.info(rank);
        (info.init_end, info.end) = (Nanos(init_end), Nanos(init_end + 1_000));
    }
    run.finish()
}

#[test]
fn moments_count_from_the_first_ranks_init() {
    let mut trace = run();
    let stretch = Stretch::between(&trace, Some(50), Some(1_050)).unwrap();
    assert_eq!(stretch.ranks, [(150, 1_150); 2]);
    let counts = [149, 150, 1_149, 1_150].map(|moment| stretch.has(1, moment));
    assert_eq!(counts, [false, true, true, false]);
    assert!(!stretch.has(2, 500));
    let named = stretch.named(&trace, None);
    assert_eq!((named.from_ns, named.to_ns, named.steps), (Nanos(50), Nanos(1_050), None));
    trace.stretch = Some(stretch);
    // within the run of each
    assert_eq!([0, 1].map(|rank| trace.run_time(rank)), [Nanos(950), Nanos(850)]);
    assert!(trace.is_counted(0, 150) && !trace.is_counted(0, 1_150));
}

#[test]
fn what_is_left_open_is_all_of_the_run() {
    let mut trace = run();
    let from = Stretch::between(&trace, Some(700), None).unwrap();
    assert_eq!(from.ranks, [(800, i64::MAX); 2]);
    let to = Stretch::between(&trace, None, Some(700)).unwrap();
    assert_eq!(to.ranks, [(i64::MIN, 800); 2]);
    assert_eq!(from.span(&trace), Some((800, 1_300)));
    for (stretch, runs) in [(from, [300, 500]), (to, [700, 500])] {
        trace.stretch = Some(stretch);
        assert_eq!([0, 1].map(|rank| trace.run_time(rank)), runs.map(Nanos));
    }
}

#[test]
fn nothing_is_said_of_nothing() {
    let trace = run();
    let error = |from, to| Stretch::between(&trace, from, to).unwrap_err().to_string();
    assert!(error(Some(500), Some(500)).contains("--to has to be the later one"));
    assert!(error(Some(1_200), None).contains("the run ends 1.20 µs after MPI_Init"));
    assert_eq!(Stretch { ranks: vec![(0, 50); 2] }.span(&trace), None);
}

#[test]
fn a_rank_that_is_over_has_no_part() {
    let info = run().ranks[0].info().clone();
    let clip = |begin, end| clipped(&info, (Nanos(begin), Nanos(end)));
    assert_eq!(clip(0, 50), (Nanos(100), Nanos(100)));
    assert_eq!(clip(2_000, 3_000), (Nanos(1_100), Nanos(1_100)));
    assert_eq!(clip(200, 3_000), (Nanos(200), Nanos(1_100)));
}
