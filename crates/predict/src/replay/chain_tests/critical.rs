use super::super::critical::critical_path;
use super::*;

/// Length, by rank, and by stretch.
fn path(replayed: &Replayed) -> (i64, Vec<i64>, Vec<(String, i64)>) {
    let Replayed { trace, program, outcome } = replayed;
    let path = critical_path(trace, program, outcome).expect("it ends");
    let stretches = path.stretches.iter().map(|&(stretch, ns)| (replayed.said(stretch), ns));
    (path.length, path.ranks, stretches.collect())
}

fn told(all: &[(&str, i64)]) -> Vec<(String, i64)> {
    all.iter().map(|&(what, ns)| (what.to_owned(), ns)).collect()
}

#[test]
fn it_goes_from_who_waited_to_who_was_waited_for() {
    let (length, ranks, stretches) = path(&Replayed::new(relay(), EAGER));
    assert_eq!((length, ranks), (1_255, vec![1_000, 150, 105]));
    let all = [
        ("computation . - 1", 1_000),
        ("communication 2", 100),
        ("communication 4", 100),
        ("computation 2 - 3", 50),
        ("computation 4 - .", 5),
    ];
    assert_eq!(stretches, told(&all));
}

#[test]
fn calls_that_do_not_wait_are_on_it_themselves() {
    let mut run = MadeUp::new(2);
    let sent = run.isend(0, 1, 1, 1_000, 10);
    run.compute(0, 5_000);
    run.wait(0, 2, &[sent]);
    run.other(0, 3, 40);
    run.compute(0, 7);
    let received = run.ireceive(1, 4, 0, 1_000, 10);
    run.wait(1, 5, &[received]);
    let (length, ranks, stretches) = path(&Replayed::new(run, EAGER));
    assert_eq!((length, ranks), (5_057, vec![5_057, 0]));
    let all = [
        ("computation 1 - 2", 5_000),
        ("overhead 3", 40),
        ("overhead 1", 10),
        ("computation 3 - .", 7),
    ];
    assert_eq!(stretches, told(&all));
}

#[test]
fn a_rendezvous_begins_with_who_came_last() {
    let mut run = MadeUp::new(2);
    let sent = run.isend(0, 1, 1, 1_000, 10);
    run.compute(0, 5_000);
    run.wait(0, 2, &[sent]);
    run.compute(1, 200);
    run.receive(1, 3, 0, 1_000);
    run.compute(1, 9_000);
    // posted at 200, asked for at 300, on the wire for 1,000, there 100 later
    let (length, ranks, stretches) = path(&Replayed::new(run, 0));
    assert_eq!((length, ranks), (10_400, vec![0, 10_400]));
    let all =
        [("computation 3 - .", 9_000), ("communication 3", 1_200), ("computation . - 3", 200)];
    assert_eq!(stretches, told(&all));
}

#[test]
fn a_barrier_leads_to_who_came_last() {
    let mut run = MadeUp::new(3);
    [100, 500, 300].into_iter().enumerate().for_each(|(rank, ns)| run.compute(rank, ns));
    run.collective("MPI_Barrier", 1, 0, 30);
    let (length, ranks, stretches) = path(&Replayed::new(run, EAGER));
    assert_eq!((length, ranks), (530, vec![30, 500, 0]));
    assert_eq!(stretches, told(&[("computation . - 1", 500), ("communication 1", 30)]));
}

#[test]
fn who_begins_later_has_computed_until_then() {
    let mut run = MadeUp::new(2);
    run.receive(0, 2, 1, 0);
    run.compute(0, 5);
    run.starts(1, 700);
    run.compute(1, 100);
    run.send(1, 1, 0, 0, 20);
    let (length, ranks, stretches) = path(&Replayed::new(run, EAGER));
    assert_eq!((length, ranks), (905, vec![105, 800]));
    let all = [("computation . - 1", 800), ("communication 2", 100), ("computation 2 - .", 5)];
    assert_eq!(stretches, told(&all));
}

#[test]
fn its_parts_add_up_whatever_the_run() {
    for seed in 0..20 {
        for eager_limit in [0, 1_000, EAGER] {
            let replayed = Replayed::new(ring(4, 12, seed), eager_limit);
            let (length, ranks, stretches) = path(&replayed);
            assert_eq!(Some(length), replayed.outcome.run_ns(&replayed.trace));
            assert_eq!(ranks.iter().sum::<i64>(), length);
            assert_eq!(stretches.iter().map(|(_, ns)| ns).sum::<i64>(), length);
            assert!(stretches.iter().all(|&(_, ns)| ns > 0));
        }
    }
}

/// Durations above 134 ms are kept rounded; the walk still finds the call that was waited for.
#[test]
fn long_waits_lead_to_the_right_call() {
    let mut run = MadeUp::new(2);
    run.compute(0, 10_000_000_123);
    run.send(0, 1, 1, 0, 20);
    run.compute(1, 17);
    run.receive(1, 2, 0, 0);
    run.compute(1, 30);
    let replayed = Replayed::new(run, EAGER);
    let (length, ranks, stretches) = path(&replayed);
    let sent = replayed.outcome.ranks[0].posted[0];
    assert_eq!(ranks[0], sent, "no overhead of the send, all of the computation before it");
    assert_eq!(stretches[0], ("computation . - 1".to_owned(), sent));
    assert_eq!(ranks.iter().sum::<i64>(), length);
}
