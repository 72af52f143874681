//! What is known in part: threads that may still act, calls that failed, locks, probes, and jobs that have ended.

use super::super::made::{before, call, job, operation, system, thread, Does, Lines, SECOND};
use super::super::messages::ANY;
use super::super::{diagnose, VerdictKind};
use super::{kind, verdict};
use lapscope_data::state::{Condition, Failed, JobState, Lock, SystemState};

#[test]
fn a_circle_that_a_thread_can_open_says_which() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 20));
    state.inside(1, operation("MPI_Recv", 0, 5, 21));
    let mut other = thread(1);
    other.system = Some(SystemState { wakes_by_itself: true, ..system('S', SECOND) });
    state.ranks[0].threads.push(other);
    state.ranks[0].thread_level = 3;
    let found = verdict(&state).verdict;
    assert_eq!((found.kind, found.certain), (VerdictKind::Slow, false));
    assert_eq!(
        found.sentence,
        "Rank 0 waits in MPI_Recv (main x.c:20) for a message from rank 1, tag 5, and rank 1 waits in MPI_Recv (main x.c:21) for a \
         message from rank 0, tag 5. That ends only when thread 1 of rank 0, which sleeps outside of MPI (last in MPI_Send (main \
         x.c:3)), does what is waited for."
    );
}

#[test]
fn a_collective_to_which_all_have_come_may_have_other_counts() {
    let mut state = job(3);
    for rank in 0..3 {
        state.inside(rank, operation("MPI_Allreduce", -3, -3, 9));
    }
    let sentence = verdict(&state).verdict.sentence;
    assert!(
        sentence.ends_with(
            "All have come to MPI_Allreduce (main x.c:9), and all 3 ranks are still inside: it takes long, or their counts or datatypes \
             do not fit each other."
        ),
        "{sentence}"
    );
}

#[test]
fn ranks_that_all_exit_with_their_launcher_keep_their_verdict() {
    let mut state = job(2);
    for rank in 0..2 {
        state.inside(rank, operation("MPI_Recv", 1 - rank as i64, 5, 20));
        state.is(rank, Condition::Exited);
    }
    assert_eq!(kind(&state), (VerdictKind::Deadlock, true));
    state.is(1, Condition::Killed);
    let found = verdict(&state).verdict;
    assert_eq!(found.kind, VerdictKind::Left, "{}", found.sentence);
}

#[test]
fn who_aborts_inside_a_call_is_named() {
    let mut state = job(3);
    state.inside(1, operation("MPI_Recv", 0, 5, 20));
    state.is(1, Condition::Aborted);
    for rank in [0, 2] {
        state.is(rank, Condition::Killed);
    }
    let found = verdict(&state).verdict;
    assert_eq!(
        (found.kind, found.sentence.as_str()),
        (VerdictKind::Dead, "Rank 1 called MPI_Abort: it was inside MPI_Recv (main x.c:20).")
    );
    let mut state = job(2);
    for rank in 0..2 {
        state.inside(rank, operation("MPI_Allreduce", -3, -3, 9));
        state.is(rank, Condition::Killed);
    }
    let sentence = verdict(&state).verdict.sentence;
    assert!(sentence.contains("All have come to MPI_Allreduce"), "{sentence}");
}

#[test]
fn a_call_that_failed_leaves_a_doubt_and_says_so() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 20));
    state.inside(1, operation("MPI_Recv", 0, 5, 21));
    state.ranks[1].history.is_whole = false;
    state.ranks[1].history.failed.push(Failed { call: call("MPI_Recv"), path: Some(8), count: 2 });
    let diagnosis = verdict(&state);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Deadlock, false));
    assert!(diagnosis.notes[0].starts_with("rank 1: MPI_Recv (main x.c:8) returned an error"));
}

#[test]
fn who_holds_a_lock_is_waited_for() {
    let mut state = job(3);
    state.inside(0, operation("MPI_Recv", 1, 5, 20));
    state.inside(1, operation("MPI_Win_lock", 2, -3, 21));
    state.inside(2, operation("MPI_Barrier", -3, -3, 22));
    state.ranks[0].history.locks.push(Lock { communicator: 0, target_world: Some(2) });
    let found = verdict(&state).verdict;
    assert_eq!((found.kind, found.certain), (VerdictKind::Deadlock, false));
    assert!(
        found.sentence.contains(
            "rank 1 waits in MPI_Win_lock (main x.c:21) for rank 0 to unlock it at rank 2, which has locked it before"
        ),
        "{}",
        found.sentence
    );
}

#[test]
fn a_probe_in_vain_says_for_what() {
    let mut state = job(2);
    state.inside(1, operation("MPI_Barrier", -3, -3, 22));
    state.ranks[0].threads[0].unsuccessful = Some(operation("MPI_Probe", 1, 5, 20));
    state.ranks[0].threads[0].unsuccessful_tests = 40;
    let mut first = before(&state);
    first.ranks[0].threads[0].unsuccessful_tests = 10;
    let diagnosis = diagnose(&first, &state, &mut Lines);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Deadlock, false));
    assert!(
        diagnosis.verdict.sentence.contains(
            "rank 0 tests in vain in MPI_Probe (main x.c:20) for a message from rank 1, tag 5"
        ),
        "{}",
        diagnosis.verdict.sentence
    );
    let place = &diagnosis.places[0];
    assert_eq!((place.polls, place.call.as_deref()), (true, Some("MPI_Probe")));
}

/// Ranks 0 and 1 wait for each other, and rank 0 sleeps, all the while or again and again.
fn sleeper(call: &str, sleeps_before: u64) -> (JobState, JobState) {
    let mut state = job(2);
    state.inside(1, operation("MPI_Recv", 0, 5, 20));
    state.inside(0, operation(call, -3, -3, 9));
    let asleep = SystemState {
        sleeps_in: "clock_nanosleep".to_owned(),
        wakes_by_itself: true,
        sleeps: 700,
        ..system('S', SECOND)
    };
    state.ranks[0].threads[0].system = Some(asleep);
    let mut first = before(&state);
    first.ranks[0].threads[0].system.as_mut().unwrap().sleeps = sleeps_before;
    (first, state)
}

#[test]
fn who_sleeps_within_a_call_is_in_a_function_of_the_programs() {
    let (first, state) = sleeper("MPI_Comm_dup", 700);
    let found = diagnose(&first, &state, &mut Lines).verdict;
    assert_eq!(
        (found.kind, found.sentence.as_str()),
        (
            VerdictKind::Asleep,
            "Rank 0 sleeps in a function of the program's that MPI calls, and the others wait for it: it is inside MPI_Comm_dup \
             (main x.c:9)."
        )
    );
    let (first, state) = sleeper("MPI_Comm_dup", 200);
    let found = diagnose(&first, &state, &mut Lines).verdict;
    assert_eq!(
        (found.kind, found.certain),
        (VerdictKind::Deadlock, true),
        "an MPI that looks around"
    );
    let (mut first, mut state) = sleeper("MPI_Comm_dup", 700);
    for look in [&mut first, &mut state] {
        look.ranks[0].threads[0].system.as_mut().unwrap().sleeps_in = "poll".to_owned();
    }
    let found = diagnose(&first, &state, &mut Lines);
    assert_eq!(
        (found.verdict.kind, found.verdict.certain),
        (VerdictKind::Deadlock, false),
        "perhaps MPI"
    );
    assert!(found.notes[0].contains("rank 0 sleeps inside an MPI call (in poll)"));
    let (mut first, mut state) = sleeper("MPI_Finalize", 700);
    for look in [&mut first, &mut state] {
        look.is(0, Condition::Finalizing);
    }
    assert_eq!(diagnose(&first, &state, &mut Lines).verdict.kind, VerdictKind::Asleep);
}

#[test]
fn of_a_job_that_has_ended_a_thread_outside_may_have_been_about_to_act() {
    let mut state = job(2);
    for rank in 0..2 {
        state.inside(rank, operation("MPI_Recv", 1 - rank as i64, 5, 20));
        state.is(rank, Condition::Killed);
    }
    assert_eq!(kind(&state), (VerdictKind::Deadlock, true));
    state.ranks[0].thread_level = 3; // of threads that never called MPI nothing is left
    assert_eq!(kind(&state), (VerdictKind::Deadlock, false));
    state.ranks[0].threads.push(thread(1));
    state.ranks[0].threads[1].system = None;
    assert_eq!(kind(&state), (VerdictKind::Deadlock, false));
}

#[test]
fn of_ranks_that_are_not_seen_it_is_not_said_that_they_ended() {
    let mut state = job(2);
    state.ranks.truncate(1);
    state.is(0, Condition::Finalized);
    let found = verdict(&state).verdict;
    assert_eq!((found.kind, found.certain), (VerdictKind::Ended, false));
    assert_eq!(found.sentence, "The 1 of 2 ranks that can be seen reached MPI_Finalize.");
}

#[test]
fn who_returns_from_main_has_ended() {
    let mut state = job(2);
    state.is(0, Condition::Exited);
    state.is(1, Condition::Finalized);
    let found = verdict(&state).verdict;
    assert_eq!(found.kind, VerdictKind::Ended);
    assert!(found.sentence.contains("Rank 0 exited without MPI_Finalize"), "{}", found.sentence);
    state.posted(0, operation("MPI_Irecv", 1, 1, 11));
    assert_eq!(kind(&state).0, VerdictKind::Dead);
}

/// Who receives from any source is a source, too; that is not why it stands where the others have left.
#[test]
fn who_waits_for_those_who_left_does_not_wait_for_itself() {
    let mut state = job(3);
    state.inside(0, operation("MPI_Recv", ANY, 5, 20));
    for rank in [1, 2] {
        state.is(rank, Condition::Finalizing);
    }
    let found = verdict(&state);
    assert_eq!((found.verdict.kind, found.verdict.certain), (VerdictKind::Left, true));
    assert!(found.further.is_empty(), "{:?}", found.further);
}

#[test]
fn a_buffer_that_empties_waits_for_who_has_not_received() {
    let mut state = job(2);
    state.sent(0, 1, 5, 1);
    state.inside(0, operation("MPI_Buffer_detach", -3, -3, 20));
    state.inside(1, operation("MPI_Recv", 0, 6, 21));
    let found = verdict(&state);
    let all = format!("{} {:?}", found.verdict.sentence, found);
    let waits =
        "rank 0 waits in MPI_Buffer_detach (main x.c:20) for rank 1 to receive a message, tag 5";
    assert!(all.contains(waits), "{all}");
}
