//! Examples whose pattern is known by their sources: which sites send to which, and whether all compute and then exchange, or
//! what is received is needed for what is sent next.

use serde_json::Value;

use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::{build, watchpoints};

/// A program, and the pattern of its messages.
struct Case {
    source: &'static str,
    args: &'static [&'static str],
    pattern: &'static str,
    /// Messages of it, at least.
    messages: u64,
}

const CASES: [Case; 5] = [
    Case { source: "halo/halo.c", args: &[], pattern: "concurrent", messages: 40 },
    Case {
        source: "wavefront/wavefront.c",
        args: &["-f", "blocking", "-r", "3", "-w", "300"],
        pattern: "pipelined",
        messages: 3 * 64,
    },
    Case {
        source: "wavefront/wavefront.c",
        args: &["-f", "overlapped", "-r", "3", "-w", "300"],
        pattern: "pipelined",
        messages: 3 * 64,
    },
    Case { source: "reach/reach.c", args: &["-i", "60"], pattern: "concurrent", messages: 120 },
    Case {
        source: "reach/reach.c",
        args: &["-i", "60", "-k", "pipelined"],
        pattern: "pipelined",
        messages: 60,
    },
];

/// What `lapscope reach` says of the pairs of a run with every buffer watched.
fn pairs(case: &Case, turn: usize) -> Vec<(String, Value)> {
    let of = |mpi| {
        let program = build::example(mpi, case.source, &["-O2", "-lm"])?;
        let place = place();
        let job = Job::new(mpi, 2, program, Form::Preload, place.path())
            .args(case.args)
            .env("LAPSCOPE_REACH", "on")
            .env("LAPSCOPE_REACH_SHARE", "100")
            .env("LAPSCOPE_REACH_BUDGET", "100");
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{}: {}", case.source, outcome.stderr);
        let run = job.run_directory();
        let text = lapscope(["reach", "--format", "json", &run.to_string_lossy()]);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let what = format!("{} {:?} under {}", case.source, case.args, mpi.name);
        Some((what, document["reach"]["pairs"].clone()))
    };
    mpis!(turn).into_iter().filter_map(of).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}: no number"))
}

#[test]
fn patterns_are_told() {
    if !watchpoints::are_there() {
        return;
    }
    for (turn, case) in CASES.iter().enumerate() {
        for (what, pairs) in pairs(case, turn) {
            let rows = pairs["rows"].as_array().unwrap_or_else(|| panic!("{what}: {pairs}"));
            let has = |row: &&Value| row["messages"].as_u64() >= Some(case.messages / 2);
            let rows: Vec<&Value> = rows.iter().filter(has).collect();
            let messages: u64 = rows.iter().filter_map(|row| row["messages"].as_u64()).sum();
            println!("{what}: {messages} messages, {}", rows[0]["pattern"]);
            assert!(messages >= case.messages, "{what}: {messages} messages");
            for row in rows {
                assert_eq!(row["pattern"], case.pattern, "{what}: {}", row["votes"]);
                check_available(&what, row);
            }
        }
    }
}

/// Finer granularities never have less, and bounds are in order; the first datum of a pipeline may have none.
fn check_available(what: &str, row: &Value) {
    let worst = |granularity: &str| &row["available_ns"][granularity]["worst"];
    let [moved, finer] = ["sent_when_produced", "sent_while_produced"].map(worst);
    assert!(number(&moved["low"]) <= number(&finer["low"]), "{what}: {moved} {finer}");
    for bounds in [moved, finer] {
        let high = bounds["high"].as_f64().unwrap_or(f64::INFINITY);
        assert!(number(&bounds["low"]) <= high, "{what}: {bounds}");
    }
    if row["pattern"] == "pipelined" {
        assert_eq!(number(&moved["low"]), 0.0, "{what}");
    }
}
