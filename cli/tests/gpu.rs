//! Ranks into which the driver of a GPU came.

use std::path::Path;

use crate::fixture::{answer, json};
use crate::html::page;
use lapscope_fixture::edit_rank;
use lapscope_fixture::small::run as small_run;
use serde_json::Value;
use tempfile::TempDir;

/// Rank 0 has a driver, whose memory the first of its three requests sends from.
pub fn run() -> TempDir {
    let run = small_run();
    edit_rank(run.path(), 0, |file| {
        file.change(
            "INSERT INTO option VALUES (0, 'accelerator', 'libcuda', 'recorded'), (0, 'device_buffers', 'none', 'recorded');
             INSERT INTO request_memory VALUES (1, 'device'), (2, 'host')",
        );
    });
    run
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number is that of a run without GPUs; what it is called is not.
#[test]
fn exposed_is_an_upper_bound() {
    let (plain, with) = (small_run(), run());
    let [without, report] = [&plain, &with].map(|run| json(run.path(), &["report", "."]));
    let summary = |report: &Value| {
        (
            report["summary"]["exposed_ns"].clone(),
            report["summary"]["exposed_is_upper_bound"].clone(),
        )
    };
    assert_eq!(summary(&without).0, summary(&report).0);
    assert_eq!((summary(&without).1, summary(&report).1), (false.into(), true.into()));
    let marks = |report: &Value| {
        let advice = report["advice"].as_array().unwrap();
        advice.iter().map(|it| it["rests_on_upper_bound"] == true).collect::<Vec<_>>()
    };
    assert!(marks(&without).iter().all(|marked| !marked), "{}", without["advice"]);
    assert!(marks(&report).contains(&true), "{}", report["advice"]);
    let accelerator = &report["head"]["accelerators"][0];
    let expected = serde_json::json!({
        "library": "libcuda", "device_buffers": "none", "ranks": 1, "recorded_ranks": 0
    });
    assert_eq!(*accelerator, expected);

    let said = |run: &Path| [words(&answer(run, &["report", "."])), words(&page(run, &[]))];
    let bound = "An upper bound: GPUs may have computed meanwhile, which is not recorded.";
    for text in said(with.path()) {
        assert!(text.contains(bound), "{text}");
        assert!(text.contains("nsys profile --trace=cuda,mpi"), "{text}");
        assert!(
            text.contains("libcuda in 1 rank, MPI takes no buffers in device memory"),
            "{text}"
        );
        assert!(
            text.contains("An upper bound: what GPUs compute meanwhile is not recorded."),
            "{text}"
        );
    }
    assert!(said(with.path())[0].contains("Exposed At most "));
    for text in said(plain.path()) {
        assert!(!text.contains("pper bound: "), "{text}");
    }
}

/// Whose driver was not asked has none, and neither has what was recorded before there was such a table.
#[test]
fn requests_have_the_memory_of_their_data() {
    let run = run();
    let listed = || {
        let found = json(run.path(), &["requests", ".", "--sort", "begin"]);
        let rows = found["requests"].as_array().unwrap().iter();
        rows.map(|row| row["memory"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["device".into(), "host".into(), Value::Null]);
    let text = answer(run.path(), &["requests", ".", "--sort", "begin"]);
    assert_eq!(text.matches(", in device memory").count(), 1, "{text}");
    let sql = [
        "sql",
        ".",
        "SELECT count(memory) FROM requests WHERE memory = 'device'",
        "--format",
        "csv",
    ];
    assert!(answer(run.path(), &sql).ends_with("\n1\n"));
    for rank in [0, 1] {
        edit_rank(run.path(), rank, |file| {
            file.change("DROP VIEW pending; DROP VIEW requests; DROP TABLE request_memory");
            file.change("DROP TABLE device_recorder; DROP TABLE device_busy");
        });
    }
    assert_eq!(listed(), [Value::Null, Value::Null, Value::Null]);
}
