//! Numbers of the report against answers worked out by hand; see `fixture` for the rows.

use crate::fixture::{answer, json, lapscope, pick};
use lapscope_fixture::small::{self, run as small_run, ISEND, PENDING, WAITALL};
use lapscope_fixture::tables::{Call, Processor, Rank, Request};
use lapscope_fixture::{edit, edit_rank};
use serde_json::{json, Value};

const PARTS: [&str; 8] = [
    "run_ns",
    "mpi_ns",
    "posting_ns",
    "exposed_ns",
    "blocking_ns",
    "collective_ns",
    "unsuccessful_test_ns",
    "other_ns",
];

/// Killed before anything was recorded: no time is measured then.
#[test]
fn nothing_recorded_is_no_time_of_zero() {
    let run = tempfile::tempdir().unwrap();
    let dead =
        Rank { world_size: 1, ended: "killed", end_ns: 1_000, summarized: 0, ..Rank::new(0) };
    dead.write(run.path(), |_| ());
    let report = answer(run.path(), &["report", "."]);
    assert!(report.contains("nothing recorded behind MPI_Init"), "{report}");
    assert!(
        !report.contains("0 ns from MPI_Init") && !report.contains("0.000 s after"),
        "{report}"
    );
}

#[test]
fn every_nanosecond_once() {
    let run = small_run();
    let report = json(run.path(), &["report", "."]);
    // posting 500 + 300 + 300 + 100; waiting 10001 + 1000, not three times 10001; MPI_Init does not count.
    let rank_0 = [100_000, 19_601, 1_200, 11_001, 5_000, 2_000, 400, 0];
    let rank_1 = [50_000, 8_000, 0, 0, 0, 8_000, 0, 0];
    assert_eq!(pick(&report["ranks"][0], &PARTS), rank_0);
    assert_eq!(pick(&report["ranks"][1], &PARTS), rank_1);
    let sums: Vec<i64> = rank_0.iter().zip(rank_1).map(|(a, b)| a + b).collect();
    assert_eq!(pick(&report["totals"], &PARTS), sums);
    assert_eq!(report["totals"]["mpi_share"], json!(27_601.0 / 150_000.0));
    let counts = ["requests", "completing_calls", "unsuccessful_tests", "unattributed_exposed_ns"];
    assert_eq!(pick(&report["totals"], &counts), [5, 2, 10, 0]);
    // 10001 ns of waiting stood against 16900 ns of computation in the window, and 1000 of requests without rows at most against theirs.
    assert_eq!(report["totals"]["possible_overlap_ns"], 11_001);
}

/// Rank 0 is outside MPI for 80399 of 100000 ns, rank 1 for 42000 of 50000. Of the former 16500 ns lie between the ten tests of a
/// loop that waits: it takes 16900 ns, and its tests 400.
#[test]
fn efficiencies_are_those_of_pop() {
    let run = small_run();
    let report = json(run.path(), &["report", "."]);
    let found = &report["efficiency"];
    assert_eq!(
        pick(found, &["useful_ns", "most_useful_ns", "runtime_ns"]),
        [105_899, 63_899, 100_000]
    );
    assert_eq!(found["parallel_efficiency"], json!(52_949.5 / 100_000.0));
    assert_eq!(found["load_balance"], json!(52_949.5 / 63_899.0));
    assert_eq!(found["communication_efficiency"], json!(63_899.0 / 100_000.0));
    let text = answer(run.path(), &["report", "."]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines =
        ["Parallel efficiency 52.9 %", "Load balance 82.9 %", "Communication efficiency 63.9 %"];
    for line in lines {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// The five answers at the top follow from the numbers below them.
#[test]
fn the_first_answers() {
    let run = small_run();
    let report = json(run.path(), &["report", "."]);
    let summary = &report["summary"];
    // all of MPI but calls that do not communicate, of which there are none here
    assert_eq!(pick(summary, &["exposed_ns", "blocked_ns"]), [27_601, 15_000]);
    assert_eq!(summary["exposed_share"], json!(27_601.0 / 150_000.0));
    let causes = summary["causes"].as_array().unwrap();
    let named: Vec<&str> = causes.iter().map(|it| it["cause"].as_str().unwrap()).collect();
    assert_eq!(named, ["transfer", "no_local_progress"]);
    let first = &report["advice"][summary["first"].as_u64().unwrap() as usize];
    assert_eq!((&first["cure"], &first["helps"]), (&json!("test"), &json!(true)));
    assert_eq!(
        (&summary["win_low_ns"], &summary["win_high_ns"]),
        (&first["time_low_ns"], &first["time_high_ns"])
    );
    let text = answer(run.path(), &["report", "."]);
    assert!(text.contains("Do first       Call MPI_Test in the computation between"), "{text}");
}

#[test]
fn sites_share_completing_calls_exactly() {
    let run = small_run();
    let report = json(run.path(), &["report", "."]);
    let sites = report["sites"].as_array().unwrap();
    let names: Vec<&str> = sites.iter().map(|site| site["call"].as_str().unwrap()).collect();
    assert_eq!(names, ["MPI_Barrier", "MPI_Isend", "MPI_Send", "MPI_Irecv", "MPI_Test"]);
    let keys = [
        "calls",
        "bytes",
        "inside_ns",
        "exposed_ns",
        "ended_requests",
        "overlap_window_ns",
        "mpi_ns",
        "compute_ns",
    ];
    let windows = 17_500 + 17_200 + 5_000;
    let isend = [4, 4_000, 900, 3_334 + 3_334 + 1_000, 4, windows, 950, windows - 950];
    assert_eq!(pick(&sites[1], &keys), isend);
    assert_eq!(pick(&sites[3], &keys), [1, 1_000, 300, 3_333, 1, 16_900, 0, 16_900]);
    // All that is laid to sites is all the time in MPI.
    let time: i64 = sites.iter().map(|site| site["time_ns"].as_i64().unwrap()).sum();
    assert_eq!(time, 27_601);
    assert_eq!(sites[0]["ranks"], 2);
    assert_eq!(sites[1]["share"], json!((900.0 + 7_668.0) / 150_000.0));
    // The innermost frame of path 2 is inside the MPI library: the site is its caller.
    assert_eq!(sites[3]["site"]["address"], 0x200);
    assert_eq!(sites[3]["site"]["module"], "/nowhere/app");
    assert_eq!(sites[3]["completed_in"]["site"]["address"], 0x300);
    let completing = &report["completing_sites"];
    assert_eq!(pick(&completing[0], &["calls", "inside_ns"]), [2, 11_001]);
}

#[test]
fn size_classes_are_powers_of_two_and_hold_all_transfers() {
    let run = small_run();
    let report = json(run.path(), &["report", "."]);
    let classes: Vec<(&str, Vec<i64>)> = report["size_classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| {
            let keys = ["from_bytes", "below_bytes", "calls", "time_ns"];
            (class["kind"].as_str().unwrap(), pick(class, &keys))
        })
        .collect();
    let expected = [
        ("point_to_point", vec![512, 1_024, 5, 1_200 + 11_001]),
        ("point_to_point", vec![4_096, 8_192, 1, 5_000]),
        ("collective", vec![0, 1, 2, 10_000]),
    ];
    assert_eq!(classes, expected);
}

#[test]
fn spread_over_ranks() {
    let run = small_run();
    let report = json(run.path(), &["report", "."]);
    let share = &report["spread"]["mpi_share"];
    assert_eq!((&share["min"], &share["min_rank"]), (&json!(0.16), &json!(1)));
    assert_eq!((&share["max"], &share["max_rank"]), (&json!(0.19601), &json!(0)));
    let compute = (80_399.0 + 42_000.0) / 2.0;
    assert_eq!(report["spread"]["compute_imbalance"], json!(80_399.0 / compute - 1.0));
}

#[test]
fn sql_views_and_the_report_agree() {
    let run = small_run();
    let database = rusqlite::Connection::open(run.path().join("rank-0.db")).unwrap();
    let sum = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let report = json(run.path(), &["report", "."]);
    let by_call = "SELECT sum(ns) FROM time_by_call WHERE call <> 'MPI_Init'";
    assert_eq!(sum(by_call), report["ranks"][0]["mpi_ns"].as_i64().unwrap());
    let windows = "SELECT sum(overlap_window_ns) FROM requests WHERE call = 'MPI_Irecv'";
    assert_eq!(sum(windows), report["sites"][3]["overlap_window_ns"].as_i64().unwrap());
}

#[test]
fn a_merged_file_says_the_same() {
    let run = small_run();
    answer(run.path(), &["export", "sqlite", ".", "-o", "merged.db"]);
    let mut separate = json(run.path(), &["report", "."]);
    let mut merged = json(run.path(), &["report", "merged.db"]);
    separate["run"] = Value::Null;
    merged["run"] = Value::Null;
    assert_eq!(separate, merged);
}

#[test]
fn one_rank_only() {
    let run = small_run();
    let report = json(run.path(), &["report", ".", "--rank", "1"]);
    assert_eq!(pick(&report["totals"], &["run_ns", "mpi_ns"]), [50_000, 8_000]);
    assert_eq!(report["sites"].as_array().unwrap().len(), 1);
}

#[test]
fn requests_out_of_order_are_still_joined() {
    let directory = tempfile::tempdir().unwrap();
    let path = Rank { world_size: 1, ..Rank::new(0) }.write(directory.path(), small::rank_0);
    edit(&path, |file| {
        let (begin_ns, duration_ns) = (60_000, Some(700));
        let wait = Call { operation_id: WAITALL, begin_ns, duration_ns, ..Call::default() };
        let wait = file.insert(Call { completed: 1, ..wait });
        file.change("UPDATE request SET id = id + 10");
        file.insert(Request {
            id: Some(1),
            operation_id: ISEND,
            completion_id: Some(wait),
            post_begin_ns: 55_000,
            post_ns: 100,
            mpi_ns: Some(0),
            ..Request::default()
        });
        file.change("UPDATE request SET id = id - 9 WHERE id > 10");
    });
    let report = json(directory.path(), &["report", "."]);
    assert_eq!(pick(&report["totals"], &["exposed_ns", "completing_calls"]), [11_701, 3]);
    assert_eq!(report["totals"]["unattributed_exposed_ns"], 0);
}

/// A dead rank is named first, with what it was inside of and what it was waiting for.
#[test]
fn deaths_come_first() {
    let directory = tempfile::tempdir().unwrap();
    let dead = Rank { ended: "killed", summarized: 0, ..Rank::new(0) };
    dead.write(directory.path(), |file| small::stuck(file, PENDING));
    let report = json(directory.path(), &["report", "."]);
    let problems = report["problems"].as_array().unwrap();
    let kinds: Vec<&str> =
        problems.iter().map(|problem| problem["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["missing_ranks", "died", "no_symbols"]);
    assert_eq!(problems[0]["ranks"], json!([1]));
    assert_eq!(
        problems[1]["message"],
        "rank 0 on node1 was killed, inside MPI_Waitall at app+0x300 (entered 0.000 s after MPI_Init); pending: \
         MPI_Irecv from any source, any tag, 64 bytes at app+0x600"
    );
    let pending = json(directory.path(), &["hang", "--pending", "."]);
    let items = pending["pending"].as_array().unwrap();
    assert_eq!(pick(&items[0], &["rank", "begin_ns", "begin_after_init_ns"]), [0, 30_000, 29_000]);
    assert_eq!((&items[0]["what"], &items[1]["what"]), (&json!("call"), &json!("request")));
    assert_eq!((&items[1]["posted_peer"], &items[1]["peer"]), (&json!(-1), &Value::Null));
}

#[test]
fn as_text() {
    let run = small_run();
    for command in ["report", "sites", "requests"] {
        insta::assert_snapshot!(command, answer(run.path(), &[command, "."]));
    }
}

#[test]
fn colour_is_for_terminals() {
    let run = small_run();
    assert!(!lapscope(run.path(), &["report", "."]).stdout.contains(&0x1b));
}

/// Ranks that waited for a processor: said before anything else, with what they shared; a little is not said.
#[test]
fn ranks_without_a_processor_are_told() {
    let run = small_run();
    let set = |wait: i64| {
        for rank in [0, 1] {
            edit_rank(run.path(), rank, |file| {
                file.change("DELETE FROM processor");
                file.insert(Processor { run_ns: 10_000, wait_ns: wait, ..Processor::default() });
            });
        }
    };
    set(30_000);
    let report = json(run.path(), &["report", "."]);
    let first = &report["problems"][0];
    assert_eq!(first["kind"], "starved", "{report:#}");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("only 25 % of the time"), "{message}");
    assert!(message.contains("2 ranks on 1 processor of node1"), "{message}");
    set(3_000);
    let report = json(run.path(), &["report", "."]);
    assert_ne!(report["problems"][0]["kind"], "starved", "{report:#}");
}

/// `lapscope run --dir a` writes a-2 where there is an a.
#[test]
fn a_newer_run_of_that_name_is_told() {
    let here = tempfile::tempdir().unwrap();
    for name in ["a", "a-2", "a-3"] {
        std::fs::rename(small_run().keep(), here.path().join(name)).unwrap();
    }
    let said = |run: &str| crate::fixture::remarks(here.path(), &["report", run]);
    assert!(
        said("a").contains("a-3 is a newer run of that name: lapscope report a-3"),
        "{}",
        said("a")
    );
    // the directory itself says nothing of when its run was recorded
    std::fs::write(here.path().join("a/rank-0.db.note"), "").unwrap();
    std::fs::create_dir(here.path().join("a-4")).unwrap();
    assert!(said("a").contains("a-3 is a newer run"), "{}", said("a"));
    assert!(!said("a-3").contains("newer run"), "{}", said("a-3"));
}
