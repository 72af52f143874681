use super::super::deadlock::{standstill, Reason, Standstill};
use super::*;

/// Ranks, each with those that it waits for.
fn circle(found: &Standstill) -> Vec<(u32, Vec<u32>)> {
    match &found.reason {
        Reason::Circle(circle) => {
            circle.iter().map(|it| (it.stuck.rank, it.ranks.clone())).collect()
        }
        Reason::Missing(_) => Vec::new(),
    }
}

fn found(replayed: &Replayed) -> Standstill {
    standstill(&replayed.trace, &replayed.outcome).expect("it does not end")
}

/// Each sends to the next, and receives only then.
fn round(ranks: usize, others: usize) -> MadeUp {
    let mut run = MadeUp::new(ranks + others);
    for rank in 0..ranks {
        run.compute(rank, 100 * (rank as i64 + 1));
        run.send(rank, 42, (rank + 1) % ranks, 8, 10);
        run.receive(rank, 43, (rank + ranks - 1) % ranks, 8);
        run.compute(rank, 5);
    }
    run
}

#[test]
fn two_that_send_to_each_other_wait_for_ever() {
    let replayed = Replayed::new(round(2, 0), 0);
    let found = found(&replayed);
    assert_eq!(circle(&found), [(0, vec![1]), (1, vec![0])]);
    assert_eq!((found.ranks, found.since), (2, 200));
    assert_eq!(standstill(&replayed.trace, &Replayed::new(round(2, 0), 8).outcome), None);
}

#[test]
fn chains_lead_to_the_circle() {
    let mut run = round(3, 3);
    // stop first, and are not in it
    for (from, to) in [(2, 3), (3, 4), (4, 5)] {
        run.receive(to, 50, from, 8);
        run.compute(to, 5);
        run.send(from, 51, to, 8, 10);
    }
    let found = found(&Replayed::new(run, 0));
    assert_eq!(circle(&found), [(0, vec![1]), (1, vec![2]), (2, vec![0])]);
    assert_eq!((found.ranks, found.since), (6, 300));
}

#[test]
fn a_collective_may_be_part_of_it() {
    let mut run = MadeUp::new(3);
    run.send(0, 1, 1, 8, 10);
    run.collective("MPI_Barrier", 2, 0, 30);
    run.receive(1, 3, 0, 8);
    run.compute(1, 5);
    let found = found(&Replayed::new(run, 0));
    assert_eq!(circle(&found), [(0, vec![1]), (1, vec![0])]);
    assert_eq!(found.ranks, 3);
}

#[test]
fn who_waits_for_a_rank_that_is_done_is_in_no_circle() {
    let mut run = MadeUp::new(3);
    run.send(0, 1, 1, 8, 10);
    run.send(0, 2, 2, 8, 10);
    run.compute(1, 1_000);
    run.receive(1, 3, 0, 8);
    run.receive(2, 4, 0, 8);
    run.compute(2, 5);
    let mut trace = run.finish();
    // all that follows was not recorded
    trace.ranks[1].end = 500;
    let found = found(&Replayed::replay(trace, 0));
    let Reason::Missing(waiting) = &found.reason else { panic!("{found:?}") };
    assert_eq!((waiting.stuck.rank, &waiting.ranks[..]), (0, &[1][..]));
    assert_eq!(found.ranks, 2);
}
