//! Deadlocks and paths in words, of small runs made in memory.

use super::document::{CriticalPath, Deadlock, PathKind};
use super::{paths, standstill};
use crate::replay::chain_tests::{relay, Replayed, EAGER};
use crate::replay::scenario::{Progress, Scenario, Size};
use lapscope_data::model::{Ended, Frame};
use lapscope_data::symbols::{unnamed, FrameName, NameFrames};
use lapscope_trace::made_up::MadeUp;

/// Addresses are lines of one file.
struct Lines;

impl NameFrames for Lines {
    fn name(&mut self, frame: Frame) -> Vec<FrameName> {
        let line = Some(frame.address as u32);
        let function = Some("exchange".to_owned());
        vec![FrameName { function, file: Some("ring.c".into()), line, ..unnamed(frame, None) }]
    }

    fn column(&mut self, _: Frame) -> Option<u32> {
        None
    }

    fn show_column(&mut self, _: Frame) {}

    fn code_bytes(&mut self, _: Frame) -> Option<u64> {
        None
    }
}

fn no_eager() -> Scenario {
    Scenario { eager_limit: Some(Size(0)), ..Scenario::default() }
}

fn told(run: MadeUp, scenario: &Scenario) -> Deadlock {
    let replayed = Replayed::new(run, 0);
    let told = standstill::deadlock(&replayed.trace, &replayed.outcome, scenario, &mut Lines);
    told.expect("it does not end")
}

/// Ranks that send to the next before they receive, the last one at a line of its own.
fn round(ranks: usize, last_line: u64) -> MadeUp {
    let mut run = MadeUp::new(ranks);
    for rank in 0..ranks {
        run.compute(rank, 1_000);
        let line = if rank + 1 == ranks { last_line } else { 42 };
        run.send(rank, line, (rank + 1) % ranks, 8, 10);
        run.receive(rank, 43, (rank + ranks - 1) % ranks, 8);
        run.compute(rank, 5);
    }
    run
}

#[test]
fn a_deadlock_says_who_is_where() {
    let deadlock = told(round(2, 42), &no_eager());
    assert_eq!(
        deadlock.says,
        "with an eager limit of 0 ranks 0 and 1 deadlock in MPI_Send at exchange ring.c:42, each until the other receives"
    );
    assert_eq!((deadlock.blocked, deadlock.at_ns.0, deadlock.cycle.len()), (2, 1_000, 2));
    assert_eq!(deadlock.cycle[1].bytes, Some(8));
    assert_eq!(deadlock.cycle[1].waits_for[0].number, 0);
    let says = told(round(3, 42), &no_eager()).says;
    assert!(says.contains(
        "ranks 0, 1 and 2 deadlock in MPI_Send at exchange ring.c:42, each until the next receives"
    ));
    let scenario = Scenario { progress: Some(Progress::Async), ..no_eager() };
    let says = told(round(2, 50), &scenario).says;
    assert_eq!(
        says,
        "with --eager-limit 0 --progress async ranks 0 and 1 deadlock (rank 0 in MPI_Send at exchange ring.c:42 until rank 1 \
         receives, rank 1 in MPI_Send at exchange ring.c:50 until rank 0 receives)"
    );
}

#[test]
fn what_is_not_known_is_called_no_deadlock() {
    let says = told(round(2, 42), &Scenario::default()).says;
    assert!(says.starts_with("the replay of the run as it was does not end"), "{says}");
    let mut lossy = round(2, 42);
    lossy.info(1).lost_records = 3;
    let deadlock = told(lossy, &no_eager());
    assert!(deadlock.says.contains("the record of rank 1 has gaps"), "{}", deadlock.says);
    let mut run = MadeUp::new(2);
    run.send(0, 42, 1, 8, 10);
    run.compute(1, 1_000);
    run.receive(1, 43, 0, 8);
    run.info(1).ended = Ended::Killed;
    // the record of rank 1 ends before its receive
    let deadlock = told(run, &no_eager());
    assert!(deadlock.cycle.is_empty());
    assert_eq!(
        deadlock.says,
        "with an eager limit of 0 the replay does not end: rank 0 is in MPI_Send at exchange ring.c:42 until rank 1 receives, \
         whose record ends where it was killed; whether that is a deadlock is not known"
    );
}

#[test]
fn a_run_that_ends_has_no_deadlock() {
    let Replayed { trace, outcome, .. } = Replayed::new(round(2, 42), EAGER);
    assert!(standstill::deadlock(&trace, &outcome, &no_eager(), &mut Lines).is_none());
}

#[test]
fn the_path_and_the_causes_have_names() {
    let Replayed { trace, program, outcome } = Replayed::new(relay(), EAGER);
    let path = paths::critical_path(&trace, &program, &outcome, 2, &mut Lines);
    let CriticalPath { length_ns, compute_ns, overhead_ns, communication_ns, by_site, .. } =
        path.expect("it ends");
    assert_eq!(
        (length_ns.0, compute_ns.0, overhead_ns.0, communication_ns.0),
        (1_255, 1_055, 0, 200)
    );
    let [computation, communication] = &by_site[..] else { panic!("two were asked for") };
    let line = |site: &Option<FrameName>| site.as_ref().and_then(|site| site.line);
    assert_eq!((computation.kind, &computation.call), (PathKind::Computation, &None));
    assert_eq!(computation.next_call.as_deref(), Some("MPI_Send"));
    assert_eq!((line(&computation.next_site), computation.ns.0), (Some(1), 1_000));
    assert_eq!(communication.kind, PathKind::Communication);
    assert_eq!(
        (communication.call.as_deref(), line(&communication.site)),
        (Some("MPI_Recv"), Some(2))
    );
    let (causes, note) = paths::root_causes(&trace, &program, &outcome, 1, &mut Lines);
    assert_eq!((causes.len(), causes[0].rank.number), (1, 0));
    assert_eq!(
        (causes[0].delayed_ns.0, causes[0].delayed_ranks, causes[0].what.ns.0),
        (1_800, 2, 1_000)
    );
    assert_eq!(note, None);
}
