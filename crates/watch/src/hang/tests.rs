//! Verdicts on jobs made by hand.

mod doubts;

use super::made::{before, call, job, operation, system, thread, Does, Lines, SECOND};
use super::{diagnose, Diagnosis, VerdictKind};
use lapscope_data::model::Nanos;
use lapscope_data::state::{Condition, JobState, OpenOperation, Partitions, SystemState};

fn verdict(state: &JobState) -> Diagnosis {
    diagnose(&before(state), state, &mut Lines)
}

fn kind(state: &JobState) -> (VerdictKind, bool) {
    let diagnosis = verdict(state);
    (diagnosis.verdict.kind, diagnosis.verdict.certain)
}

#[test]
fn ssends_to_each_other_are_a_deadlock() {
    let mut state = job(3);
    state.inside(0, operation("MPI_Ssend", 1, 5, 20));
    state.inside(1, operation("MPI_Ssend", 0, 5, 20));
    state.inside(2, operation("MPI_Recv", 0, 5, 30));
    let diagnosis = verdict(&state);
    let verdict = &diagnosis.verdict;
    assert_eq!(
        (verdict.kind, verdict.certain, verdict.cycle.len()),
        (VerdictKind::Deadlock, true, 2)
    );
    assert_eq!(
        verdict.sentence,
        "Deadlock: rank 0 waits in MPI_Ssend (main x.c:20) for rank 1 to receive the message, tag 5, and rank 1 waits in \
         MPI_Ssend (main x.c:20) for rank 0 to receive the message, tag 5. 1 other rank waits for them."
    );
    assert!(diagnosis.waits.iter().all(|wait| wait.stuck));
    assert_eq!(diagnosis.places.iter().map(|place| place.count).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_standard_send_that_has_not_returned_needs_its_receiver() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Send", 1, 5, 20));
    state.inside(1, operation("MPI_Send", 0, 5, 20));
    assert_eq!(kind(&state), (VerdictKind::Deadlock, true));
    let sentence = verdict(&state).verdict.sentence;
    let [keeps, cure] =
        [" MPI does not keep these messages", ": MPI_Sendrecv, or MPI_Irecv before the send"];
    let unknown = format!("{keeps}, as it does those up to its eager limit{cure}");
    assert!(sentence.contains(&unknown), "{sentence}");
    for rank in 0..2 {
        let sent =
            OpenOperation { bytes: 1 << 16, ..operation("MPI_Send", 1 - rank as i64, 5, 20) };
        state.inside(rank, sent);
    }
    let sentence = verdict(&state).verdict.sentence;
    let known = format!("{keeps} (64.0 KiB of rank 0, 64.0 KiB of rank 1), as it does");
    assert!(sentence.contains(&known), "{sentence}");
}

#[test]
fn sends_that_may_be_eager_make_it_a_perhaps() {
    let mut state = job(2);
    for (rank, other) in [(0, 1), (1, 0)] {
        state.posted(rank, operation("MPI_Isend", other, 1, 10));
        state.posted(rank, operation("MPI_Irecv", other, 1, 11));
        state.waits(rank, "MPI_Waitall", 12);
    }
    assert_eq!(kind(&state), (VerdictKind::Slow, false), "each gets the other's message");
    for rank in &mut state.ranks {
        rank.requests.retain(|it| it.operation.call == call("MPI_Isend"));
        rank.requests.push(rank.requests[0].clone());
    }
    for rank in 0..2 {
        state.waits(rank, "MPI_Waitall", 12);
    }
    assert_eq!(kind(&state).0, VerdictKind::Deadlock);
}

#[test]
fn a_partition_that_nobody_makes_ready_is_waited_for() {
    let mut state = job(2);
    for (rank, name) in [(0, "MPI_Isend"), (1, "MPI_Irecv")] {
        state.posted(rank, operation(name, 1 - rank as i64, 1, 10));
        state.waits(rank, "MPI_Wait", 12);
    }
    state.ranks[0].requests[0].partitions = Some(Partitions { all: 4, ready: 3 });
    let found = verdict(&state).verdict;
    assert_eq!((found.kind, found.certain), (VerdictKind::Deadlock, false), "{}", found.sentence);
    assert_eq!(found.ranks, [state.ranks[0].rank]);
    assert!(
        found.sentence.contains("to make all partitions of its MPI_Isend (main x.c:10) ready"),
        "{}",
        found.sentence
    );
    for partitions in [Partitions { all: 4, ready: 4 }, Partitions { all: 70_000, ready: 65_535 }] {
        state.ranks[0].requests[0].partitions = Some(partitions);
        assert_eq!(kind(&state), (VerdictKind::Slow, false));
    }
    state.ranks[0].requests[0].partitions = Some(Partitions { all: 4, ready: 3 });
    state.ranks[0].thread_level = 3;
    let mut other = state.ranks[0].threads[0].clone();
    (other.number, other.open) = (1, None);
    state.ranks[0].threads.push(other);
    assert_ne!(
        kind(&state).0,
        VerdictKind::Deadlock,
        "another thread computes, and may make it ready"
    );
}

#[test]
fn a_rank_that_computes_is_no_deadlock() {
    let mut state = job(4);
    for rank in 1..4 {
        state.inside(rank, operation("MPI_Barrier", -3, -3, 9));
    }
    let diagnosis = verdict(&state);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Computes, true));
    assert_eq!(
        diagnosis.verdict.sentence,
        "Rank 0 computes outside of MPI (100.0 % of a processor), and the others wait for it: its last MPI call was MPI_Send \
         (main x.c:3), 90.0 s ago."
    );
    state.ranks[0].threads[0].system = Some(system('S', SECOND));
    assert_eq!(kind(&state).0, VerdictKind::Asleep);
    state.ranks[0].threads[0].system = Some(system('T', SECOND));
    assert_eq!(kind(&state).0, VerdictKind::Stopped);
}

#[test]
fn all_in_the_same_collective_is_slow() {
    let mut state = job(4);
    for rank in 0..4 {
        state.inside(rank, operation("MPI_Allreduce", -3, -3, 9));
    }
    assert_eq!(kind(&state), (VerdictKind::Slow, false));
}

#[test]
fn who_goes_on_is_no_deadlock() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 20));
    state.inside(1, operation("MPI_Recv", 0, 5, 20));
    let mut earlier = before(&state);
    earlier.ranks[1].threads[0].calls -= 1;
    let diagnosis = diagnose(&earlier, &state, &mut Lines);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Progress);
    assert_eq!(kind(&state), (VerdictKind::Deadlock, true));
}

#[test]
fn another_tag_is_named() {
    let mut state = job(2);
    state.sent(0, 1, 17, 1);
    state.inside(0, operation("MPI_Barrier", -3, -3, 21));
    state.inside(1, operation("MPI_Recv", 0, 7, 30));
    let diagnosis = verdict(&state);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::NoMatch, true));
    assert_eq!(
        diagnosis.verdict.sentence,
        "Rank 1 waits in MPI_Recv (main x.c:30) for a message from rank 0, tag 7, and none was sent; rank 0 sent it a message \
         with tag 17, which no receive is for."
    );
    assert_eq!(diagnosis.further[0].kind, VerdictKind::Deadlock, "0 waits for 1 in the barrier");
}

#[test]
fn another_communicator_is_named() {
    let mut state = job(2);
    let in_row = OpenOperation { communicator: Some(1), ..operation("MPI_Ssend", 1, 7, 20) };
    state.inside(0, in_row);
    state.inside(1, operation("MPI_Recv", 0, 7, 30));
    let diagnosis = verdict(&state);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::NoMatch);
    assert!(diagnosis.verdict.sentence.contains("tag 7 in row by MPI_Ssend (main x.c:20)"));
}

#[test]
fn tags_that_both_were_used_before_are_no_mistake() {
    let mut state = job(2);
    for tag in [7, 17] {
        state.sent(0, 1, tag, 10);
        state.received(1, 0, tag, if tag == 17 { 9 } else { 10 });
    }
    state.inside(0, operation("MPI_Recv", 1, 7, 21));
    state.inside(1, operation("MPI_Recv", 0, 7, 30));
    assert_eq!(kind(&state), (VerdictKind::Deadlock, true));
}

#[test]
fn a_message_that_is_there_is_no_hang() {
    let mut state = job(2);
    state.sent(0, 1, 7, 1);
    state.inside(0, operation("MPI_Recv", 1, 7, 21));
    state.inside(1, operation("MPI_Recv", 0, 7, 30));
    assert_eq!(kind(&state).0, VerdictKind::Slow);
    state.received(1, 0, 7, 1);
    assert_eq!(kind(&state).0, VerdictKind::Deadlock);
}

#[test]
fn a_wildcard_may_have_what_a_certain_receive_waits_for() {
    let mut state = job(3);
    state.sent(1, 0, 5, 1);
    state.posted(0, operation("MPI_Irecv", -1, -1, 10));
    state.posted(0, operation("MPI_Irecv", 1, 5, 11));
    state.waits(0, "MPI_Waitany", 12);
    state.inside(1, operation("MPI_Recv", 0, 1, 13));
    state.inside(2, operation("MPI_Recv", 0, 1, 13));
    assert_eq!(kind(&state).0, VerdictKind::Slow);
}

#[test]
fn any_source_needs_one_who_can_send() {
    let mut state = job(3);
    state.inside(0, operation("MPI_Recv", -1, 5, 10));
    state.inside(1, operation("MPI_Recv", 0, 5, 11));
    assert_eq!(kind(&state).0, VerdictKind::Computes, "rank 2 may send");
    state.inside(2, operation("MPI_Probe", 0, 5, 12));
    let diagnosis = verdict(&state);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Deadlock, true));
    let ranks: Vec<i64> = diagnosis.verdict.ranks.iter().map(|it| it.number).collect();
    assert_eq!(ranks, [0, 1, 2], "any of the others could have let rank 0 go on");
    assert_eq!(diagnosis.verdict.cycle.len(), 2, "rank 0 and another, not rank 0 by itself");
}

#[test]
fn a_thread_that_never_called_mpi_may_do_so_yet() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 10));
    state.inside(1, operation("MPI_Recv", 0, 5, 10));
    state.ranks[0].thread_level = 3;
    state.ranks[0].init_end = Nanos(SECOND);
    let since_init = state.ranks[0].now.0 - SECOND / 2;
    let mut of_other = |sleeps_in: &str, age: i64| {
        let sleeps_in = sleeps_in.to_owned();
        let wakes_by_itself = sleeps_in == "clock_nanosleep";
        let other =
            SystemState { sleeps_in, wakes_by_itself, age: Nanos(age), ..system('S', SECOND) };
        state.ranks[0].other_threads = vec![other];
        kind(&state)
    };
    let of_mpi = of_other("epoll_wait", since_init);
    assert_eq!(of_mpi, (VerdictKind::Deadlock, true), "a thread of the MPI library");
    let of_program = of_other("epoll_wait", since_init - SECOND);
    assert_eq!(of_program, (VerdictKind::Deadlock, false), "it may get what it waits for");
    assert_eq!(of_other("futex", since_init), (VerdictKind::Deadlock, false), "if nobody wakes it");
    assert_ne!(of_other("clock_nanosleep", since_init).0, VerdictKind::Deadlock);
    state.ranks[0].other_threads = vec![system('R', SECOND)];
    assert_ne!(kind(&state).0, VerdictKind::Deadlock);
}

#[test]
fn a_rank_in_finalize_has_left() {
    let mut state = job(3);
    for rank in 0..2 {
        state.inside(rank, operation("MPI_Allreduce", -3, -3, 9));
    }
    state.is(2, Condition::Finalizing);
    let diagnosis = verdict(&state);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Left, true));
    assert!(
        diagnosis.verdict.sentence.starts_with("Rank 2 has entered MPI_Finalize"),
        "{}",
        diagnosis.verdict.sentence
    );
    // what killed all of them does not change it
    for rank in 0..3 {
        state.is(rank, Condition::Killed);
    }
    assert_ne!(kind(&state).0, VerdictKind::Left);
    state.inside(2, operation("MPI_Finalize", -3, -3, 9));
    assert_eq!(kind(&state), (VerdictKind::Left, true));
}

#[test]
fn requests_left_in_finalize_are_named() {
    let mut state = job(2);
    for rank in 0..2 {
        state.inside(rank, operation("MPI_Finalize", -3, -3, 9));
        state.is(rank, Condition::Finalizing);
    }
    assert_eq!(kind(&state), (VerdictKind::Slow, false));
    state.posted(0, OpenOperation { bytes: 64, ..operation("MPI_Isend", 1, 5, 20) });
    let found = verdict(&state).verdict;
    assert_eq!((found.kind, found.certain), (VerdictKind::Unfinished, true));
    assert_eq!(
        found.sentence,
        "Rank 0 is inside MPI_Finalize with requests of its own under way: MPI_Isend to rank 1, tag 5, 64 bytes (main x.c:20). \
         MPI_Finalize may wait for them for ever, or crash: complete all requests before."
    );
    // others are waited for first
    state.is(1, Condition::Runs);
    state.ranks[1].threads = vec![thread(0)];
    let diagnosis = verdict(&state);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Computes);
    assert!(diagnosis.further.iter().any(|it| it.kind == VerdictKind::Unfinished));
}

#[test]
fn a_crash_in_finalize_is_said() {
    let mut state = job(2);
    state.is(0, Condition::Finalized);
    state.inside(1, operation("MPI_Finalize", -3, -3, 9));
    state.is(1, Condition::Killed);
    let found = diagnose(&state, &state, &mut Lines).verdict;
    assert_eq!((found.kind, found.ranks.len()), (VerdictKind::Dead, 1));
    assert_eq!(
        found.sentence,
        "Rank 1 was inside MPI_Finalize when the job ended: it crashed there, or was ended from outside."
    );
    state.posted(1, operation("MPI_Irecv", 0, 5, 20));
    let found = diagnose(&state, &state, &mut Lines).verdict;
    assert_eq!(found.kind, VerdictKind::Unfinished);
    assert!(found.sentence.contains("MPI_Irecv from rank 0, tag 5"), "{}", found.sentence);
    // while the other runs it is dead
    state.inside(0, operation("MPI_Finalize", -3, -3, 9));
    state.is(0, Condition::Finalizing);
    let found = verdict(&state).verdict;
    assert_eq!(found.kind, VerdictKind::Dead);
    assert!(found.sentence.contains("with requests of its own under way"), "{}", found.sentence);
}

#[test]
fn a_rank_that_was_killed_is_the_root() {
    let mut state = job(3);
    state.inside(0, operation("MPI_Recv", 1, 5, 10));
    state.inside(2, operation("MPI_Recv", 0, 5, 10));
    state.is(1, Condition::Killed);
    assert_eq!(kind(&state), (VerdictKind::Dead, true));
}

#[test]
fn a_job_that_was_killed_shows_its_deadlock() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 10));
    state.inside(1, operation("MPI_Recv", 0, 5, 10));
    for rank in 0..2 {
        state.is(rank, Condition::Killed);
    }
    let diagnosis = diagnose(&state, &state, &mut Lines);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Deadlock, true));
    state.ranks.iter_mut().for_each(|rank| rank.condition = Condition::Finalized);
    assert_eq!(diagnose(&state, &state, &mut Lines).verdict.kind, VerdictKind::Ended);
}

#[test]
fn collectives_in_another_order_are_a_mismatch() {
    let mut state = job(3);
    for rank in 0..3 {
        state.called(rank, 0, &[("MPI_Barrier", -3), ("MPI_Allreduce", -3)]);
        state.inside(rank, operation("MPI_Barrier", -3, -3, 9));
    }
    state.inside(1, OpenOperation { peer: 0, ..operation("MPI_Bcast", 0, -3, 12) });
    let diagnosis = verdict(&state);
    assert_eq!(
        (diagnosis.verdict.kind, diagnosis.verdict.certain),
        (VerdictKind::CollectiveMismatch, true)
    );
    assert_eq!(
        diagnosis.verdict.sentence,
        "Collectives do not match: as number 3 in MPI_COMM_WORLD ranks make different calls: rank 1 calls MPI_Bcast (main \
         x.c:12) with root 0, ranks 0, 2 call MPI_Barrier (main x.c:9)."
    );
}

#[test]
fn different_roots_are_a_mismatch() {
    let mut state = job(3);
    for rank in 0..3 {
        state.inside(rank, operation("MPI_Bcast", i64::from(rank == 2), -3, 12));
    }
    state.called(0, 0, &[("MPI_Bcast", 0)]);
    state.ranks[0].threads[0].open = None;
    state.inside(0, operation("MPI_Barrier", -3, -3, 13));
    let diagnosis = verdict(&state);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::CollectiveMismatch);
    let said = format!("{} {:?}", diagnosis.verdict.sentence, diagnosis.waits);
    let words = ["name different roots", "for ranks 0-1 to call it, with the same root"];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn communicators_in_another_order_are_a_mismatch() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Barrier", -3, -3, 9));
    state
        .inside(1, OpenOperation { communicator: Some(1), ..operation("MPI_Barrier", -3, -3, 10) });
    let diagnosis = verdict(&state);
    assert_eq!(
        (diagnosis.verdict.kind, diagnosis.verdict.certain),
        (VerdictKind::CollectiveMismatch, true)
    );
    assert_eq!(diagnosis.verdict.cycle.len(), 2);
}

#[test]
fn nonblocking_collectives_stand_by_their_order() {
    let mut state = job(2);
    for rank in 0..2 {
        state.called(rank, 0, &[("MPI_Barrier", -3), ("MPI_Ibarrier", -3)]);
        state.posted(rank, operation("MPI_Ibarrier", -3, -3, 9));
        state.waits(rank, "MPI_Wait", 10);
    }
    assert_eq!(kind(&state).0, VerdictKind::Slow);
    state.ranks[1].history.collectives[0].last[1].call = call("MPI_Allreduce");
    state.ranks[1].requests.clear();
    state.inside(1, operation("MPI_Recv", 0, 5, 11));
    assert_eq!(kind(&state).0, VerdictKind::CollectiveMismatch);
}

#[test]
fn communicators_windows_and_files_gather_all() {
    for name in ["MPI_Comm_dup", "MPI_Win_fence"] {
        let mut state = job(2);
        state.inside(0, operation(name, -3, -3, 9));
        state.inside(1, operation("MPI_Recv", 0, 5, 11));
        assert_eq!(kind(&state), (VerdictKind::Deadlock, true), "{name}");
    }
    let mut state = job(2);
    state.inside(0, operation("MPI_File_write", -3, -3, 9));
    state.inside(1, operation("MPI_Recv", 0, 5, 11));
    assert_eq!(kind(&state).0, VerdictKind::Slow, "a slow disk");
    state.inside(0, operation("MPI_Win_lock", 1, -3, 9));
    assert_eq!(kind(&state), (VerdictKind::Deadlock, false), "who holds the lock is not recorded");
}

#[test]
fn a_rank_that_tests_in_vain_is_perhaps_in_a_circle() {
    let mut state = job(2);
    state.posted(0, operation("MPI_Irecv", 1, 5, 9));
    state.inside(1, operation("MPI_Recv", 0, 5, 11));
    let rank = &mut state.ranks[0];
    (rank.requests[0].unsuccessful_tests, rank.requests[0].last_unsuccessful_test) = (9, rank.now);
    (rank.threads[0].calls, rank.threads[0].unsuccessful_tests) = (19, 9);
    let mut earlier = before(&state);
    (earlier.ranks[0].threads[0].calls, earlier.ranks[0].threads[0].unsuccessful_tests) = (12, 2);
    let diagnosis = diagnose(&earlier, &state, &mut Lines);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Deadlock, false));
    assert!(
        diagnosis.verdict.sentence.contains("rank 0 tests in vain"),
        "{}",
        diagnosis.verdict.sentence
    );
}

#[test]
fn another_thread_may_still_act() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 10));
    state.inside(1, operation("MPI_Recv", 0, 5, 10));
    state.ranks[0].threads.push(thread(1));
    assert_eq!(kind(&state), (VerdictKind::Deadlock, true), "only one thread may call MPI");
    state.ranks[0].thread_level = 3;
    assert_eq!(kind(&state).0, VerdictKind::Computes);
    state.ranks[0].threads[1].system = Some(system('S', 0));
    assert_eq!(kind(&state), (VerdictKind::Deadlock, false));
}

#[test]
fn what_is_unseen_may_act() {
    let mut state = job(2);
    state.inside(0, operation("MPI_Recv", 1, 5, 10));
    state.ranks.truncate(1);
    let diagnosis = verdict(&state);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Slow);
    assert!(diagnosis.notes[0].starts_with("1 of 2 ranks cannot be seen"));
}

#[test]
fn ten_thousand_ranks_are_quick() {
    let mut state = job(10_000);
    for rank in 1..10_000 {
        let calls = vec![("MPI_Allreduce", -3); 20];
        state.called(rank, 0, &calls);
        state.inside(rank, operation("MPI_Barrier", -3, -3, 9));
    }
    state.called(0, 0, &[("MPI_Allreduce", -3); 20]);
    state.inside(0, operation("MPI_Recv", 7, 5, 10));
    let earlier = before(&state);
    let diagnosis = diagnose(&earlier, &state, &mut Lines);
    assert_eq!((diagnosis.verdict.kind, diagnosis.verdict.certain), (VerdictKind::Deadlock, true));
    assert_eq!(diagnosis.verdict.cycle.len(), 2);
    assert_eq!(diagnosis.places[0].ranks.len(), 1);
    assert_eq!(diagnosis.verdict.ranks.len(), 2);
    let since = diagnosis.places[1].since_least_ns;
    assert_eq!(since, Nanos(80 * SECOND));
}
