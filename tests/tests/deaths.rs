//! Ranks that die: what was complete before is in the data, what was not is listed with its call path.

use std::path::Path;

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::expect::Expectation;
use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, invariants, rows};

/// What `die.c` has done when rank 0 dies.
const ROWS: &str = "\
rank=0 request MPI_Isend send bytes=16 peer=1 tag=1 ended=waited by=MPI_Waitall x10
rank=0 request MPI_Irecv recv bytes=16 peer=1 tag=1 ended=waited by=MPI_Waitall x10
rank=1 request MPI_Isend send bytes=16 peer=0 tag=1 ended=waited by=MPI_Waitall x10
rank=1 request MPI_Irecv recv bytes=16 peer=0 tag=1 ended=waited by=MPI_Waitall x10
rank=0-1 call MPI_Waitall other completed=2 x10
rank=0-1 call MPI_Barrier collective
rank=0 request MPI_Irecv recv bytes=16 peer=1 tag=2 ended=pending x3
rank=1 request MPI_Irecv recv bytes=16 peer=0 tag=3 ended=pending
rank=1 call MPI_Wait other completed=0";

/// Whether a JSON value has this text anywhere in it.
fn mentions(value: &serde_json::Value, text: &str) -> bool {
    value.to_string().contains(text)
}

/// The call paths of pending requests and calls name the functions that made them.
fn check_pending(run: &Path) {
    let printed =
        lapscope(["pending".as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    let pending: serde_json::Value =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    for function in ["post_never_matched", "wait_for_ever", "main"] {
        assert!(mentions(&pending, function), "no call path through {function} in {pending:#}");
    }
    let text = lapscope(["pending".as_ref(), run.as_os_str()]);
    assert!(text.contains("post_never_matched") && text.contains("MPI_Irecv"), "{text}");
}

fn check_rows(mpi: &Mpi, run: &Path, ended: [&str; 2]) {
    let databases = rows::databases(run);
    assert_eq!(databases.len(), 2, "{:?}", rows::files(run));
    for (path, ended) in databases.iter().zip(ended) {
        let database = rows::open(path);
        assert_eq!(invariants::check(&database), Ok(()), "{}", path.display());
        assert_eq!(rows::value(&database, "SELECT ended FROM rank"), ended, "{}", path.display());
    }
    let expectation = Expectation::parse(ROWS, mpi.name, "die.c");
    if let Err(differences) = expectation.compare(&rows::read_run(run)) {
        panic!("{}: rows (- expected, + found)\n{differences}", mpi.name);
    }
}

/// Dies in the way named; `ended` is what the database says of the two ranks. Variables are set as given.
fn check_death(how: &str, ended: [&str; 2], environment: &[(&str, &Path)]) {
    for mpi in mpi::all() {
        let place = place();
        let app = build::app(mpi, "die");
        let bare = Job::new(mpi, 2, &app, Form::Bare, place.path()).args([how]).run();
        let mut job = Job::new(mpi, 2, &app, Form::Preload, place.path()).args([how]);
        for (name, value) in environment {
            job = job.env(name, *value);
        }
        let with = job.run();
        let run = job.run_directory();
        let differences: Vec<_> = outcome_differences(&bare, &with)
            .into_iter()
            .filter(|text| !text.starts_with("standard error"))
            .collect();
        assert!(differences.is_empty(), "{} {how}: {differences:#?}", mpi.name);
        lapscope(["recover".as_ref(), run.as_os_str()]);
        let left: Vec<_> = rows::files(&run)
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("spool"))
            .collect();
        assert!(left.is_empty(), "{} {how}: left after recover: {left:?}", mpi.name);
        check_rows(mpi, &run, ended);
        check_pending(&run);
    }
}

#[test]
fn abort() {
    check_death("abort", ["abort", "killed"], &[]);
}

#[test]
fn exit_without_finalize() {
    check_death("exit", ["exit", "killed"], &[]);
}

#[test]
fn exit_without_destructors() {
    check_death("_exit", ["killed", "killed"], &[]);
}

#[test]
fn sigkill() {
    check_death("kill", ["killed", "killed"], &[]);
}

#[test]
fn sigterm() {
    check_death("term", ["killed", "killed"], &[]);
}

#[test]
fn sigsegv() {
    check_death("segv", ["killed", "killed"], &[]);
}

#[test]
fn sigkill_with_the_spool_elsewhere() {
    let spools = place();
    check_death("kill", ["killed", "killed"], &[("LAPSCOPE_SPOOL_DIR", spools.path())]);
    assert_eq!(rows::files(spools.path()), Vec::<std::path::PathBuf>::new());
}

/// `report` needs no `recover` before it, and says which ranks died.
#[test]
fn report_recovers_first() {
    for mpi in mpi::all() {
        let place = place();
        let job =
            Job::new(mpi, 2, build::app(mpi, "die"), Form::Preload, place.path()).args(["kill"]);
        job.run();
        let run = job.run_directory();
        let report = lapscope(["report".as_ref(), run.as_os_str()]);
        assert!(report.contains("died") || report.contains("killed"), "{report}");
        check_rows(mpi, &run, ["killed", "killed"]);
    }
}
