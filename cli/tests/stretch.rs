//! Numbers of a part of a run.

use std::path::Path;

use crate::fixture::{answer, command, json, lapscope, text};
use lapscope_fixture::small;

/// The totals of rank 0.
fn totals(run: &Path, more: &[&str]) -> [i64; 6] {
    let report = json(run, &[&["report", ".", "--rank", "0"], more].concat());
    let keys = ["run_ns", "requests", "calls", "exposed_ns", "blocking_ns", "collective_ns"];
    keys.map(|key| report["totals"][key].as_i64().unwrap())
}

/// Its MPI_Waitall, of three requests, begins within the first 30 us, MPI_Send and MPI_Barrier later; the run takes 100 us.
#[test]
fn what_begins_in_it_counts() {
    let run = small::run();
    let until = totals(run.path(), &["--to", "30us"]);
    assert_eq!(until, [30_000, 3, 4, 10_001, 0, 0]);
    let behind = totals(run.path(), &["--from", "30us"]);
    assert_eq!(behind, [70_000, 0, 2, 0, 5_000, 2_000]);
    let between = totals(run.path(), &["--from", "0.00003", "--to", "45us"]);
    assert_eq!(between, [15_000, 0, 1, 0, 5_000, 0]);
    let sites = json(run.path(), &["sites", ".", "--rank", "0", "--from", "30us"]);
    let calls: Vec<&str> =
        sites["sites"].as_array().unwrap().iter().map(|it| it["call"].as_str().unwrap()).collect();
    assert_eq!((calls, &sites["run_ns"]), (vec!["MPI_Send", "MPI_Barrier"], &70_000.into()));
    let overlap = json(run.path(), &["overlap", ".", "--rank", "0", "--from", "30us"]);
    assert_eq!(
        (&overlap["totals"]["requests"], &overlap["totals"]["run_ns"]),
        (&0.into(), &70_000.into())
    );
}

/// Two of the run's 5 requests are in a tally, and so are ten unsuccessful tests.
#[test]
fn what_has_no_moments_is_named_and_left_out() {
    let run = small::run();
    let report = answer(run.path(), &["report", ".", "--to", "30us"]);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        report.contains("only what begins 0 ns to 30.0 µs after MPI_Init (30.0 µs)"),
        "{report}"
    );
    assert!(report.contains("10 unsuccessful tests and probes and 3 calls"), "{report}");
    let kinds = |more: &[&str]| -> Vec<String> {
        let report = json(run.path(), &[&["report", "."], more].concat());
        let problems = report["problems"].as_array().unwrap().clone();
        problems.iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert!(kinds(&["--to", "30us"]).contains(&"no_moments".to_owned()));
    assert!(!kinds(&[]).contains(&"no_moments".to_owned()));
}

#[test]
fn what_cannot_be_is_refused_with_a_way_out() {
    let run = small::run();
    for (arguments, code, expected) in [
        (&["--from", "1"][..], 1, "the run ends 100 µs after MPI_Init"),
        (&["--from", "9us", "--to", "9us"], 1, "--to has to be the later one"),
        (&["--step", "1"], 1, "--from and --to take timestamps"),
        (&["--step", "0"], 2, "the first is 1"),
        (&["--step", "1", "--to", "2"], 2, "cannot be used with"),
        (&["--from", "soon"], 2, "as 4.7, or a time with a unit"),
    ] {
        for which in ["report", "overlap", "sites", "thresholds"] {
            let refused = lapscope(run.path(), &[&[which, "."], arguments].concat());
            let said = text(&refused.stderr);
            assert!(
                refused.status.code() == Some(code) && said.contains(expected),
                "{which}: {said}"
            );
        }
    }
    let helped = text(&command(run.path(), &["report", "--help"]).output().unwrap().stdout);
    assert!(helped.contains("--step <N|N-M>"), "{helped}");
}
