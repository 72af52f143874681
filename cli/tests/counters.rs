//! CPU time and counters: sums at call sites, values of requests, also in a file of several ranks.

use std::path::Path;

use crate::fixture::{answer, json};
use lapscope_fixture::tables::{CallCounter, Counter, Rank, RequestCounter, Setting};
use lapscope_fixture::{small, Fixture};
use serde_json::{json, Value};

fn measured_run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    Rank::new(0).write(directory.path(), |file| {
        small::rank_0(file);
        measure(file);
    });
    Rank::new(1).write(directory.path(), small::rank_1);
    directory
}

/// The Waitall ends two sends and a receive: a third of what it took is laid to each.
fn measure(file: &Fixture) {
    file.insert(Setting { name: "LAPSCOPE_CPU_TIME", value: "on", ..Setting::default() });
    file.change("UPDATE call SET user_ns = 600, system_ns = 300 WHERE id = 2");
    file.change("UPDATE call SET user_ns = 50, system_ns = 5 WHERE id = 3");
    let (name, problem) = ("PAPI_TOT_INS", Some("Event does not exist"));
    file.insert(Counter { name, problem, ..Counter::default() });
    let (name, description, unit) = ("sde:::app::WORK", "work done", "items");
    file.insert(Counter { number: 1, name, description, unit, problem: None });
    for (call_row_id, value) in [(2, 90), (3, -7)] {
        file.insert(CallCounter { call_row_id, number: 1, value });
    }
    for (request_id, value) in [(1, 1_000), (2, 11)] {
        file.insert(RequestCounter { request_id, number: 1, value });
    }
}

fn site<'a>(sites: &'a Value, call: &str) -> &'a Value {
    let all = sites["sites"].as_array().unwrap();
    all.iter().find(|site| site["call"] == call && site["kind"] != "completing").unwrap()
}

fn check(directory: &Path, run: &str) {
    let sites = json(directory, &["sites", run]);
    let counted = |in_calls: i64, calls: u64, in_overlap_windows: i64, requests: u64| {
        json!([{"name": "sde:::app::WORK", "unit": "items", "in_calls": in_calls, "counted_calls": calls,
                "in_overlap_windows": in_overlap_windows, "counted_requests": requests}])
    };
    let isend = site(&sites, "MPI_Isend");
    assert_eq!((&isend["user_ns"], &isend["system_ns"]), (&json!(400), &json!(200)));
    assert_eq!(isend["counters"], counted(60, 2, 1011, 2));
    let irecv = site(&sites, "MPI_Irecv");
    assert_eq!((&irecv["user_ns"], &irecv["system_ns"]), (&json!(200), &json!(100)));
    assert_eq!(irecv["counters"], counted(30, 1, 0, 0));
    let send = site(&sites, "MPI_Send");
    assert_eq!((&send["user_ns"], &send["system_ns"]), (&json!(50), &json!(5)));
    assert_eq!(send["counters"], counted(-7, 1, 0, 0));
    let barrier = site(&sites, "MPI_Barrier");
    assert_eq!((barrier.get("user_ns"), barrier.get("counters")), (None, None));

    let requests = json(directory, &["requests", run, "--sort", "begin"]);
    let counters = |at: usize| requests["requests"][at]["counters"].clone();
    assert_eq!(counters(0), json!({"sde:::app::WORK": 1000}));
    assert_eq!(counters(1), json!({"sde:::app::WORK": 11}));
    assert_eq!(counters(2), Value::Null);
}

#[test]
fn sums_at_sites_and_values_of_requests() {
    let run = measured_run();
    check(run.path(), ".");
    let text = answer(run.path(), &["sites", "."]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" "); // however wide lines are
    let phrase = "CPU 200 ns user, 100 ns system, sde:::app::WORK 1011 items in overlap windows and 60 items in calls";
    assert!(text.contains(phrase), "{text}");
    assert!(text.contains("sde:::app::WORK -7 items in calls"), "{text}");
}

#[test]
fn the_same_in_a_merged_file() {
    let run = measured_run();
    answer(run.path(), &["export", "sqlite", "rank-1.db", "rank-0.db", "--output", "all.db"]);
    check(run.path(), "all.db");
}
