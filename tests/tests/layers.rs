//! Calls through functions that only pass on to MPI: sites are their callers, in what is reported and in what policies name.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use lapscope_tests::answer::{ask, number, policy_rule, rows, site, text};
use lapscope_tests::build;
use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};

/// Calls of `halo` and of `transpose` on each of two ranks; of `exchange` there are two.
const ARGS: [&str; 2] = ["20", "10"];

/// Runs the program in `place`; what it printed, and its run directory.
fn run(mpi: &Mpi, form: Form, settings: &[(&str, &str)], place: &Path) -> (String, PathBuf) {
    let mut job = Job::new(mpi, 2, build::app(mpi, "layers"), form, place).args(ARGS);
    job = settings.iter().fold(job, |job, (name, value)| job.env(name, *value));
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "layers under {}: {}", mpi.name, outcome.stderr);
    assert!(!outcome.said.iter().any(|line| line.contains("POLICY")), "{outcome:?}");
    (outcome.stdout.clone(), job.run_directory())
}

/// Calls of one MPI function, by the function that the site is in.
fn calls(answer: &Value, call: &str) -> Vec<(String, u64)> {
    let wanted = rows(answer, "sites").iter().filter(|row| text(row, "call") == call);
    let function = |row: &Value| text(&row["site"], "function").to_owned();
    let mut calls: Vec<(String, u64)> =
        wanted.map(|row| (function(row), number(row, "calls") as u64)).collect();
    calls.sort_unstable();
    calls
}

/// As [`calls`], with the functions' names known to the compiler.
fn expected(calls: &[(&str, u64)]) -> Vec<(String, u64)> {
    calls.iter().map(|&(function, calls)| (function.to_owned(), calls)).collect()
}

#[test]
fn callers_of_a_layer_are_the_sites() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let (_, run) = run(mpi, Form::Preload, &[], place.path());
        let report = ask("report", &run);
        let by_caller = expected(&[("exchange", 4), ("halo", 40), ("transpose", 20)]);
        for call in ["MPI_Irecv", "MPI_Isend"] {
            assert_eq!(calls(&report, call), by_caller, "{call} under {}", mpi.name);
        }
        let wrappers: Vec<&str> =
            rows(&report, "wrappers").iter().map(|wrapper| text(wrapper, "function")).collect();
        assert_eq!(wrappers, ["finish", "layer_irecv", "layer_isend", "layer_waitall"]);
        let completed = &site(&report, "MPI_Irecv", "halo")["completed_in"];
        assert_eq!(text(&completed["site"], "function"), "halo", "{completed:#}");
        let overlap = ask("overlap", &run);
        assert_eq!(number(site(&overlap, "MPI_Isend", "transpose"), "requests"), 20.0);
        unfolded(&run);
        as_asked(&run);
        elsewhere(&run);
    }
}

/// Whole call paths still have the layer.
fn unfolded(run: &Path) {
    let sites = ask("sites", run);
    let sends = rows(&sites, "sites").iter().filter(|row| text(row, "call") == "MPI_Isend");
    for row in sends.filter(|row| text(&row["site"], "function") == "halo") {
        let frames = rows(row, "frames").iter().map(|frame| text(frame, "function"));
        assert_eq!(frames.take(3).collect::<Vec<_>>(), ["layer_isend", "halo", "main"]);
    }
}

fn as_asked(run: &Path) {
    let report = |wrapper: &str| -> Value {
        let words = ["report", "--format", "json", "--wrapper", wrapper].map(AsRef::as_ref);
        let printed = lapscope(words.into_iter().chain([run.as_os_str()]));
        serde_json::from_str(&printed).expect("JSON")
    };
    let as_called = expected(&[("exchange", 4), ("layer_isend", 60)]);
    assert_eq!(calls(&report("none"), "MPI_Isend"), as_called);
    let outermost = expected(&[("halo", 40), ("main", 2), ("main", 2), ("transpose", 20)]);
    assert_eq!(calls(&report("exch*"), "MPI_Isend"), outermost);
}

/// Other commands name the same places.
fn elsewhere(run: &Path) {
    let answer = |words: &[&str], runs: &[&Path]| -> Value {
        let words = words.iter().map(AsRef::as_ref).chain(runs.iter().map(|run| run.as_os_str()));
        serde_json::from_str(&lapscope(words)).expect("JSON")
    };
    let diff = answer(&["diff", "--format", "json", "--top", "0"], &[run, run]);
    let sends = rows(&diff, "sites").iter().filter(|row| text(row, "call") == "MPI_Isend");
    let mut functions: Vec<&str> = sends.map(|row| text(&row["site_a"], "function")).collect();
    functions.sort_unstable();
    assert_eq!(functions, ["exchange", "halo", "transpose"]);
    let words = ["requests", "--format", "json", "--top", "0", "--call", "isend"];
    let requests = answer(&words, &[run]);
    let posted = |function: &str| {
        let starts = |row: &&Value| text(row, "site").starts_with(function);
        rows(&requests, "requests").iter().filter(starts).count()
    };
    assert_eq!([posted("halo"), posted("transpose"), posted("layer_isend")], [40, 20, 0]);
}

/// A policy that leaves one caller out leaves the others in, and the program computes the same.
#[test]
fn policies_tell_callers_apart() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let (bare, _) = run(mpi, Form::Bare, &[], place.path());
        let mode = ("LAPSCOPE_INJECT", "calls");
        let (with, first) = run(mpi, Form::Preload, &[mode], place.path());
        assert_eq!(with, bare, "under {}", mpi.name);
        let injection = ask("report", &first)["injection"].take();
        let line = |post: &Value| {
            assert_eq!(rows(post, "callers").len(), 1, "{post:#}");
            policy_rule("MPI_Isend", post)
        };
        let lines = rows(site(&injection, "MPI_Isend", "halo"), "addresses").iter().map(line);
        let policy = place.path().join("policy");
        fs::write(&policy, lines.collect::<String>()).expect("a policy");
        fs::remove_dir_all(&first).expect("the first run");
        let file = policy.to_str().expect("a path of letters");
        let settings = [mode, ("LAPSCOPE_INJECT_POLICY", file)];
        let (with, second) = run(mpi, Form::Preload, &settings, place.path());
        assert_eq!(with, bare, "under {} with a policy", mpi.name);
        let injection = ask("report", &second)["injection"].take();
        let windows = |call, function| {
            let site = site(&injection, call, function);
            (number(site, "requests"), site["policy"].clone())
        };
        assert_eq!(windows("MPI_Isend", "halo"), (0.0, Value::Bool(false)));
        assert_eq!(windows("MPI_Isend", "transpose"), (20.0, Value::Bool(true)));
        assert_eq!(windows("MPI_Irecv", "halo"), (40.0, Value::Bool(true)));
    }
}

/// Advice on four lines of one function is one piece, whatever the cure.
#[test]
fn one_cure_is_one_line() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let program = build::app(mpi, "directions");
        let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args(["262144", "20"]);
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "directions under {}: {}", mpi.name, outcome.stderr);
        let report = ask("report", &job.run_directory());
        println!("{}", lapscope(["report".as_ref(), job.run_directory().as_os_str()]));
        let function = |place: &Value| text(&place["site"], "function").to_owned();
        let mut said: Vec<(String, String, Vec<String>)> = rows(&report, "advice")
            .iter()
            .map(|advice| {
                let change = rows(advice, "change").iter().chain([&advice["waiting"]]);
                let change = change.map(|place| text(place, "call").to_owned() + &function(place));
                (text(advice, "cure").to_owned(), function(&advice["waiting"]), change.collect())
            })
            .collect();
        assert!(!said.is_empty(), "{report:#}");
        let all = said.len();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), all, "{:#}", report["advice"]);
    }
}
