//! Deadlocks and paths of small runs made in memory.

use super::buffering::{may_keep, relies_on_buffering, ReliesOnBuffering};
use super::document::{
    Blocked, CriticalPath, Deadlock, PathKind, PeerAction, RecordEnd, Standstill,
};
use super::{paths, standstill};
use crate::replay::chain_tests::{relay, Replayed, EAGER};
use lapscope_data::model::{Ended, Frame, Rank};
use lapscope_data::symbols::{unnamed, FrameName, NameFrames};
use lapscope_measure::thresholds::Thresholds;
use lapscope_trace::made_up::MadeUp;
use lapscope_trace::Trace;

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

fn told(run: MadeUp) -> Deadlock {
    let replayed = Replayed::new(run, 0);
    let told = standstill::deadlock(&replayed.trace, &replayed.outcome, &mut Lines);
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
fn a_deadlock_tells_who_is_where() {
    let deadlock = told(round(2, 42));
    assert!(matches!(deadlock.standstill, Standstill::Circle { gaps: None, is_wildcard: false }));
    assert_eq!((deadlock.blocked, deadlock.at_ns.0, deadlock.cycle.len()), (2, 1_000, 2));
    assert_eq!((deadlock.cycle[1].bytes, deadlock.cycle[1].awaits), (Some(8), PeerAction::Receive));
    assert_eq!(deadlock.cycle[1].waits_for[0].number, 0);
    let line = |it: &Blocked| it.site.as_ref().and_then(|site| site.line);
    let cycle = told(round(3, 50)).cycle;
    assert_eq!(cycle.iter().map(line).collect::<Vec<_>>(), [Some(42), Some(42), Some(50)]);
}

#[test]
fn what_is_not_known_is_called_no_deadlock() {
    let mut lossy = round(2, 42);
    lossy.info(1).lost_records = 3;
    let found = told(lossy).standstill;
    assert!(matches!(found, Standstill::Circle { gaps: Some(rank), .. } if rank.number == 1));
    let mut run = MadeUp::new(2);
    run.send(0, 42, 1, 8, 10);
    run.compute(1, 1_000);
    run.receive(1, 43, 0, 8);
    run.info(1).ended = Ended::Killed;
    // the record of rank 1 ends before its receive
    let deadlock = told(run);
    assert!(deadlock.cycle.is_empty());
    let Standstill::Missing { blocked, other: Some((other, end)) } = deadlock.standstill else {
        panic!("{:?}", deadlock.standstill);
    };
    assert_eq!((blocked.rank.number, blocked.awaits), (0, PeerAction::Receive));
    assert_eq!((other.number, end), (1, RecordEnd::Killed));
}

#[test]
fn a_run_that_ends_has_no_deadlock() {
    let Replayed { trace, outcome, .. } = Replayed::new(round(2, 42), EAGER);
    assert!(standstill::deadlock(&trace, &outcome, &mut Lines).is_none());
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

/// What is said of a run that ends where MPI keeps messages.
fn relies(trace: Trace) -> Option<ReliesOnBuffering> {
    let replayed = Replayed::replay(trace, 0);
    let (trace, outcome) = (&replayed.trace, &replayed.outcome);
    relies_on_buffering(trace, outcome, &Thresholds::default(), &mut Lines).relies
}

#[test]
fn sends_that_rely_on_buffering_are_found() {
    let found = relies(round(3, 42).finish()).expect("a circle");
    assert_eq!((found.bytes, found.waits_from_bytes, found.cycle.len()), (8, None, 3));
    assert!(found.sends.iter().all(|&is_send| is_send));
}

#[test]
fn what_the_record_leaves_open_is_not_accused() {
    let all_whole = round(2, 42).finish();
    assert!(may_keep(&all_whole) && relies(all_whole).is_some());
    let mut trace = round(2, 42).finish();
    trace.ranks[1].info_mut().ended = Ended::Killed;
    assert!(relies(trace).is_none());
    // a root of a broadcast need not wait for anybody
    let mut run = MadeUp::new(2);
    run.send(0, 1, 1, 8, 10);
    run.collective("MPI_Bcast", 2, 1, 30);
    run.receive(1, 3, 0, 8);
    run.compute(1, 5);
    assert!(relies(run.finish()).is_none());
}

#[test]
fn who_waits_in_a_broadcast_waits_for_its_root() {
    let mut run = MadeUp::new(3);
    run.send(0, 1, 1, 8, 10);
    run.collective("MPI_Bcast", 2, 0, 30);
    run.receive(1, 3, 0, 8);
    run.compute(1, 5);
    let cycle = relies(run.finish()).expect("a circle").cycle;
    let ranks =
        |numbers: &[i64]| numbers.iter().map(|&it| Rank::of_first_world(it)).collect::<Vec<_>>();
    assert_eq!(cycle.iter().map(|it| it.rank).collect::<Vec<_>>(), ranks(&[0, 1]));
    assert_eq!(cycle[1].waits_for, ranks(&[0]), "and not for rank 2, which has not come either");
}

#[test]
fn a_barrier_between_a_send_and_its_receive_relies_on_buffering() {
    let mut run = MadeUp::new(2);
    run.send(0, 1, 1, 8, 10);
    run.collective("MPI_Barrier", 2, 0, 30);
    run.receive(1, 3, 0, 8);
    run.compute(1, 5);
    assert_eq!(relies(run.finish()).expect("a circle").bytes, 8);
}
