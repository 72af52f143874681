//! Steps of programs whose number of iterations, and how long each takes, the programs say themselves.

use std::path::Path;

use lapscope_tests::answer::{number, rows};
use lapscope_tests::build;
use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials;
use serde_json::Value;

const STEPS: u64 = 40;
/// What may go by between the program's look at the clock and the recorder's, seconds: a mark, or a call's begin.
const BETWEEN: f64 = 100e-6;

fn report(run: &Path, more: &[&str]) -> Value {
    let run = run.to_str().expect("a path");
    let printed = lapscope([&["report", run, "--format", "json", "--rank", "0"], more].concat());
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// "step NUMBER SECONDS"
fn said(line: &str) -> Option<f64> {
    line.strip_prefix("step ")?.split_once(' ')?.1.parse().ok()
}

/// The number is exact, and so are durations but for what goes by between two looks at clocks; the machine may take the
/// processor away between them, so that a few may be anything.
fn check(mpi: &Mpi, marks: &str) {
    trials::up_to_three(&format!("{marks} under {}", mpi.name), || check_once(mpi, marks));
}

fn check_once(mpi: &Mpi, marks: &str) {
    let place = place();
    let job = Job::new(mpi, 2, build::app(mpi, "marked_steps"), Form::Preload, place.path());
    let job = job.args([marks]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let expected: Vec<f64> = outcome.stdout.lines().filter_map(said).collect();
    assert_eq!(expected.len() as u64, STEPS - 1, "{outcome:?}");
    let all = report(&job.run_directory(), &[]);
    let steps = &all["steps"];
    assert_eq!(steps["count"], STEPS, "{marks} under {}: {}", mpi.name, all["no_steps"]);
    assert_eq!((&steps["ranks"], &steps["other_ranks"]), (&2.into(), &0.into()), "{marks}");
    let durations: Vec<f64> =
        rows(steps, "rows").iter().map(|row| number(row, "duration_ns") * 1e-9).collect();
    let is_exact = |(is, said): &(&f64, &f64)| (*is - *said).abs() < BETWEEN;
    let exact = durations.iter().zip(&expected).filter(is_exact).count();
    assert!(exact * 4 >= expected.len() * 3, "{marks}: {durations:?} {expected:?}");
    let one = report(&job.run_directory(), &["--step", "7"]);
    assert_eq!(one["totals"]["run_ns"], rows(steps, "rows")[6]["duration_ns"], "{marks}");
    assert_eq!((&one["totals"]["requests"], &one["stretch"]["steps"]), (&4.into(), &STEPS.into()));
    let text = lapscope(
        ["report", "--step", "7"].map(Path::new).into_iter().chain([&*job.run_directory()]),
    );
    assert!(text.contains("Step 7 takes ") && !text.contains("typical step"), "{text}");
    let loop_alone = report(&job.run_directory(), &["--step", "1-40"]);
    assert_eq!(loop_alone["totals"]["requests"], 4 * STEPS, "{marks}: not the one before the loop");
    timeline(&job.run_directory(), &place.path().join("timeline.json"), marks);
}

/// Of both ranks: an exchange is two sends, two receives and a call that waits, and there is one more than steps.
fn timeline(run: &Path, file: &Path, marks: &str) {
    lapscope([&["export", "chrome", "-o"].map(Path::new)[..], &[file, run]].concat());
    let text = std::fs::read_to_string(file).expect("a timeline");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    let count = |key: &str, value: &str, phase: &str| {
        let events = rows(&timeline, "traceEvents").iter();
        events.filter(|event| event["ph"] == phase && event[key] == value).count() as u64
    };
    let exchanges = 2 * (STEPS + 1);
    let calls = [
        ("MPI_Isend", 2 * exchanges),
        ("MPI_Irecv", 2 * exchanges),
        ("MPI_Waitall", exchanges),
        ("MPI_Allreduce", 2 * STEPS / 5),
    ];
    for (call, expected) in calls {
        assert_eq!(count("name", call, "X"), expected, "{call}");
    }
    assert_eq!(count("cat", "request", "b"), 4 * exchanges);
    assert_eq!(["s", "f"].map(|phase| count("cat", "message", phase)), [2 * exchanges; 2]);
    let marked = if marks == "nothing" { 0 } else { 2 * STEPS };
    assert_eq!(["b", "e"].map(|phase| count("cat", "region", phase)), [marked; 2], "{marks}");
}

#[test]
fn steps_that_are_marked() {
    share!(mpi::debian()).into_iter().for_each(|mpi| check(mpi, "steps"));
}

#[test]
fn steps_that_are_regions() {
    share!(mpi::debian()).into_iter().for_each(|mpi| check(mpi, "regions"));
}

#[test]
fn steps_that_are_found() {
    share!(mpi::debian()).into_iter().for_each(|mpi| check(mpi, "nothing"));
}
