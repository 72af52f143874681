//! What `lapscope export` hands to other programs.

use std::path::Path;

use crate::fixture::goal::{self, What};
use lapscope_fixture::call_id;
use lapscope_fixture::calls::Calls;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::tables::{Operation, Rank};

fn write(directory: &Path, ranks: &[Calls]) {
    for calls in ranks {
        let rank = Rank { end_ns: 1_000_000, ..Rank::plain(calls.rank) };
        rank.write(directory, |file| calls.write(file));
    }
}

/// Rank 0 computes for 10 us, sends, computes for 89 us and waits until 150 us; both meet in a barrier.
fn pair(directory: &Path) {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, 1000, 10);
    ranks[0].wait(3, 100, 150, &[send]);
    let receive = ranks[1].receive(2, 1000, 0);
    ranks[1].wait(3, 1, 150, &[receive]);
    for calls in &mut ranks {
        calls.block(Operation::collective("MPI_Barrier", 5), 200, 220);
    }
    write(directory, &ranks);
}

#[test]
fn a_schedule_by_hand() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    let text = crate::fixture::answer(run.path(), &["export", "goal", ".", "--unit", "ns"]);
    let rank_0 = "num_ranks 2\n\nrank 0 {\n\
        c1: calc 10000\n\
        m0: send 1000b to 1 tag 0\nm0 requires c1\n\
        c2: calc 89000\nc2 irequires m0\n\
        c3: calc 50000\nc3 requires c2\nc3 requires m0\n\
        x4: send 1b to 1 tag 1\nx4 requires c3\n\
        x5: recv 1b from 1 tag 1\nx5 requires c3\n\
        m1: calc 0\nm1 requires x4\nm1 requires x5\n\
        c6: calc 780000\nc6 requires c3\nc6 requires m1\n}\n";
    assert!(text.starts_with(rank_0), "{text}");
    let schedule = goal::parse(&text);
    assert_eq!((goal::run(&schedule, false), goal::run(&schedule, true)), (3, 3));

    let finer = goal::parse(&crate::fixture::answer(run.path(), &["export", "goal", "."]));
    assert_eq!(finer[0][0].what, What::Calc(10_000_000), "picoseconds");

    let file = run.path().join("run.goal");
    crate::fixture::answer(run.path(), &["export", "goal", ".", "--unit", "ns", "-o", "run.goal"]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), text);
}

const RANKS: i64 = 5;
const ROUNDS: i64 = 20;
/// By rank 3.
const ROOTED: [&str; 2] = ["MPI_Bcast", "MPI_Reduce"];

/// A ring of five ranks, with collectives of each pattern between the rounds.
fn ring(directory: &Path) {
    for rank in 0..RANKS {
        let mut rows = Rows::default();
        for t in (0..ROUNDS).map(|round| round * 1_000_000) {
            let (next, last) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
            let receive = (("MPI_Irecv", "recv", 5000, last, 7), t, 500, 0);
            let send = (("MPI_Isend", "send", 5000, next, 7), t + 1_000, 500, 0);
            rows.complete("MPI_Waitall", t + 100_000, 50_000, &[receive, send]);
            for (place, call) in
                ["MPI_Allreduce", "MPI_Bcast", "MPI_Reduce", "MPI_Scan"].iter().enumerate()
            {
                let begin = t + 200_000 + 100_000 * place as i64;
                rows.blocking((call, "collective", 64, -1, -1), begin, 10_000);
            }
            let posted = (("MPI_Ibarrier", "collective", 0, -1, -1), t + 700_000, 500, 0);
            rows.complete("MPI_Wait", t + 800_000, 20_000, &[posted]);
        }
        let rank = Rank { end_ns: 30_000_000, world_size: RANKS, ..Rank::plain(rank) };
        rank.write(directory, |file| {
            rows.write(file);
            file.change(&format!("UPDATE communicator SET size = {RANKS}"));
            for call in ROOTED {
                let call = call_id(call);
                file.change(&format!("UPDATE operation SET peer = 3 WHERE call_id = {call}"));
            }
        });
    }
}

#[test]
fn every_message_is_received_and_every_rank_ends() {
    let run = tempfile::tempdir().unwrap();
    ring(run.path());
    let text = crate::fixture::answer(run.path(), &["export", "goal", "."]);
    assert_eq!(crate::fixture::remarks(run.path(), &["export", "goal", "."]), "");
    let schedule = goal::parse(&text);
    // the ring; dissemination in 3 rounds, twice; two trees; a chain
    let each = RANKS + 2 * 3 * RANKS + 3 * (RANKS - 1);
    assert_eq!(goal::run(&schedule, false) as i64, ROUNDS * each);
    assert_eq!(goal::run(&schedule, true) as i64, ROUNDS * each);
    let computed = |own: &[goal::Operation]| -> u64 {
        own.iter().map(|o| if let What::Calc(ps) = o.what { ps / 1000 } else { 0 }).sum()
    };
    // of 30 ms each round 50 + 4 * 10 + 20 us in calls, and three posts of 500 ns
    let in_calls = 110_000 + 1_500;
    let whole = 30_000_000 - ROUNDS as u64 * in_calls;
    assert!(schedule.iter().all(|own| computed(own) == whole), "{}", computed(&schedule[0]));
}

/// Rank 1 was not recorded: what it sent and received, and the barrier, are left out and counted.
#[test]
fn what_has_no_other_end_is_left_out_and_counted() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    std::fs::remove_file(run.path().join("rank-1.db")).unwrap();
    let text = crate::fixture::answer(run.path(), &["export", "goal", "."]);
    assert_eq!(goal::run(&goal::parse(&text), true), 0);
    let remarks = crate::fixture::remarks(run.path(), &["export", "goal", "."]);
    assert!(remarks.contains("1 sends and receives are left out"), "{remarks}");
    assert!(remarks.contains("1 entries of collectives are left out"), "{remarks}");
}

/// L 1 us, o_s 200 ns, o_r 300 ns, 1 GB/s, and nothing known of larger messages than 8000 bytes but that they wait.
const CALIBRATION: &str = r#"{
  "format": 3, "created": "2026-05-04T12:30:00Z", "lapscope_version": "0.1.0", "launch": ["mpirun"], "ranks": 2,
  "hosts": ["node1"], "mpi_library": "Open MPI v4.1.4, package: x", "environment": {},
  "times": {"localities": {"node": [{"bytes": 1000.0, "ns": 2000.0, "low_ns": 1500.0, "high_ns": 2600.0, "samples": 12}]},
            "collectives": {}},
  "loggps": [{"locality": "node", "latency_ns": VALUE(1000), "eager_limit_bytes": 8000,
    "segments": [{"min_bytes": 0, "max_bytes": 2097152,
      "send": {"base_ns": VALUE(200), "ns_per_byte": VALUE(0)}, "receive": {"base_ns": VALUE(300), "ns_per_byte": VALUE(0)},
      "gap_ns": VALUE(700), "gap_ns_per_byte": VALUE(1), "beyond_ns": VALUE(0), "wire_ns_per_byte": VALUE(1)}],
    "residual": {"median": 0.01, "worst": 0.1, "worst_bytes": 8}, "exchanges": 100}]
}"#;

fn calibrated(run: &Path, text: &str) {
    let mut values = String::new();
    for part in text.split("VALUE(").enumerate() {
        values += &match part {
            (0, first) => first.to_owned(),
            (_, rest) => {
                let (value, rest) = rest.split_once(')').unwrap();
                format!(r#"{{"low": {value}, "estimate": {value}, "high": {value}}}{rest}"#)
            }
        };
    }
    let directory = run.join("calibrations");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("some.json"), values).unwrap();
}

#[test]
fn parameters_are_those_of_the_calibration_that_fits() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    let ask = ["export", "loggps", "--for", "loggopsim", "."];
    let none = crate::fixture::failure(run.path(), &ask);
    assert!(none.contains("lapscope calibrate -- <launch line>"), "{none}");
    calibrated(run.path(), CALIBRATION);
    let flags = "-L 1000000 -o 250000 -g 700000 -G 1000 -O 0 -S 8000\n";
    assert_eq!(crate::fixture::answer(run.path(), &ask), flags);
    let ask = ["export", "loggps", "--for", "loggopsim", "--unit", "ns", "--calibration"];
    let named =
        crate::fixture::answer(run.path(), &[&ask[..], &["calibrations/some.json"]].concat());
    assert_eq!(named, "-L 1000 -o 250 -g 700 -G 1 -O 0 -S 8000\n");
    let simgrid =
        crate::fixture::answer(run.path(), &["export", "loggps", "--for", "simgrid", "."]);
    assert!(simgrid.contains("--cfg=smpi/or:0:3.0000e-7:0.0000e0\n"), "{simgrid}");
    let dimemas =
        crate::fixture::answer(run.path(), &["export", "loggps", "--for", "dimemas", "."]);
    assert!(dimemas.starts_with("#DIMEMAS_CONFIGURATION\n"), "{dimemas}");
    assert!(dimemas.contains("{0, 1, \"\", 2, 1.0, 0.000001500, 1000.000, "), "{dimemas}");
    let far = ["export", "loggps", "--for", "simgrid", "--between", "network", "."];
    let nothing = crate::fixture::failure(run.path(), &far);
    assert!(nothing.contains("nothing between ranks of different nodes"), "{nothing}");
}

/// Parameters that make no sense are as good as none, and reference times of the file stay.
#[test]
fn parameters_that_make_no_sense_are_not_used() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    calibrated(run.path(), &CALIBRATION.replace("VALUE(1000)", "VALUE(-5)"));
    let none = crate::fixture::failure(run.path(), &["export", "loggps", "--for", "simgrid", "."]);
    assert!(none.contains("no calibration with LogGPS parameters fits"), "{none}");
    let overlap = crate::fixture::json(run.path(), &["overlap", "."]);
    assert_eq!(overlap["reference"]["source"]["kind"], "calibration");
}
