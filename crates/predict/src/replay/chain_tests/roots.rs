use super::super::roots::roots;
use super::*;

/// Rank, what it did, how long others waited for that, how many, and how long it took.
type DelayRow = (usize, String, i64, usize, i64);

fn causes(replayed: &Replayed) -> Vec<DelayRow> {
    let Replayed { trace, program, outcome } = replayed;
    let found = roots(trace, program, outcome, 0);
    let told = found
        .causes
        .iter()
        .map(|it| (it.rank, replayed.said(it.what), it.delayed, it.delayed_ranks, it.took));
    told.collect()
}

#[test]
fn a_wait_for_who_waited_is_due_to_what_that_one_waited_for() {
    let told = causes(&Replayed::new(relay(), EAGER));
    let all = [
        (0, "computation . - 1", 1_800, 2, 1_000),
        (1, "communication 2", 200, 2, 100),
        (2, "communication 4", 100, 1, 100),
        (1, "computation . - 2", 90, 1, 100),
        (1, "computation 2 - 3", 50, 1, 50),
    ];
    let all: Vec<DelayRow> = all
        .map(|(rank, what, delayed, ranks, took)| (rank, what.to_owned(), delayed, ranks, took))
        .into();
    assert_eq!(told, all);
}

#[test]
fn a_call_may_be_the_cause() {
    let mut run = MadeUp::new(2);
    run.other(0, 1, 400);
    run.send(0, 2, 1, 0, 20);
    run.receive(1, 3, 0, 0);
    run.compute(1, 5);
    let told = causes(&Replayed::new(run, EAGER));
    assert_eq!(told[0], (0, "overhead 1".to_owned(), 400, 1, 400));
    assert_eq!(told[1], (1, "communication 3".to_owned(), 100, 1, 100));
    assert_eq!(told.len(), 2);
}

#[test]
fn all_wait_for_who_comes_last() {
    let mut run = MadeUp::new(3);
    [100, 500, 300].into_iter().enumerate().for_each(|(rank, ns)| run.compute(rank, ns));
    run.collective("MPI_Barrier", 1, 0, 30);
    let told = causes(&Replayed::new(run, EAGER));
    // each of the 30 ns that a barrier takes at least is no waiting: from 130 and 330 to 530
    assert_eq!(told[0], (1, "computation . - 1".to_owned(), 370 + 170, 2, 500));
    let rest: Vec<i64> = told[1..].iter().map(|it| it.2).collect();
    assert_eq!(rest, [30, 30]);
}

#[test]
fn all_waiting_has_a_cause() {
    for seed in 0..20 {
        for eager_limit in [0, 1_000, EAGER] {
            let Replayed { trace, program, outcome } =
                Replayed::new(ring(4, 12, seed), eager_limit);
            let found = roots(&trace, &program, &outcome, 0);
            let waits: i64 = outcome.ranks.iter().map(|rank| rank.wait).sum();
            assert_eq!(found.waits, waits, "seed {seed}, eager limit {eager_limit}");
            let due: i64 = found.causes.iter().map(|cause| cause.delayed).sum();
            assert_eq!(due + found.short + found.rest, waits);
            assert_eq!(found.rest, 0);
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let Replayed { trace, program, outcome } = Replayed::new(ring(6, 40, 7), 1_000);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("few threads").install(|| roots(&trace, &program, &outcome, 10))
    };
    let one = with(1);
    assert_eq!(one.causes.len(), 10);
    assert_eq!(with(3), one);
}
