//! Tests take nothing of the user who runs them: with a calibration of this machine in his home directory and variables set
//! that would change or break every run, they see neither. `make check` runs all suites in such an environment
//! (`tests/hostile.sh`); here it is shown that what lies in it would be taken.

use std::path::Path;

use lapscope_tests::answer::{ask, text};
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, paths, rows};

/// `lapscope calibrate`, as a user with this home directory does it.
fn calibrate(mpi: &Mpi, home: &Path) {
    let place = place();
    let job = Job::calibrate(mpi, &["--seconds".as_ref(), "1".as_ref()], &[], place.path());
    let outcome = job.env("HOME", home).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

/// Where the reference times of a run are from, as the tests see it, or with a variable set.
fn source_kind(run: &Path, set: Option<(&str, &Path)>) -> String {
    let overlap = match set {
        None => ask("overlap", run),
        Some((name, value)) => {
            let mut command = child::command(paths::lapscope());
            // also one whose ranks lacked processors
            command.args(["overlap", "--format", "json", "--reference", "calibration"]);
            command.arg(run).env(name, value);
            let output = command.output().expect("lapscope runs");
            serde_json::from_slice(&output.stdout).expect("JSON")
        }
    };
    text(&overlap["reference"]["source"], "kind").to_owned()
}

/// A run of `tests/apps/test_loop.c`.
fn record(mpi: &Mpi, place: &Path) {
    let job = Job::new(mpi, 2, build::app(mpi, "test_loop"), Form::Preload, place);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(outcome.said.len(), 1, "only where the data is: {:?}", outcome.said);
    for path in rows::databases(&job.run_directory()) {
        let database = rows::open(&path);
        let ended = "SELECT ended || ', ' || summarized FROM rank";
        assert_eq!(rows::value(&database, ended), "finalize, 0");
        assert_ne!(rows::value(&database, "SELECT count(*) FROM call_path"), "0");
        let set = "SELECT count(*) FROM environment WHERE value LIKE '%no_such%'";
        assert_eq!(rows::value(&database, set), "0");
        let injected = "SELECT count(*) FROM injector";
        assert_eq!(rows::value(&database, injected), "0");
    }
}

#[test]
fn nothing_of_the_users_is_taken() {
    let home = tempfile::tempdir().expect("a home directory");
    let mpi = mpi::all()[0];
    calibrate(mpi, home.path());
    // it fits: whoever does not take care takes it
    let place = place();
    record(mpi, place.path());
    let run = place.path().join("run");
    assert_eq!(source_kind(&run, Some(("HOME", home.path()))), "calibration");
    let data = home.path().join(".local/share");
    assert_eq!(source_kind(&run, Some(("XDG_DATA_HOME", &data))), "calibration");
    std::fs::remove_file(run.join("calibration.json")).expect("the run has a copy");
    assert_ne!(source_kind(&run, None), "calibration");

    let tests = std::env::current_exe().expect("this program");
    let mut command = child::command(paths::root().join("tests/hostile.sh"));
    command
        .arg(tests)
        .args(["--exact", "hermetic::as_such_a_user", "--ignored", "--nocapture"])
        .env("HOSTILE_HOME", home.path())
        .envs(
            ["LAPSCOPE_BIN", "LAPSCOPE_LIB_DIR"]
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
    let output = command.output().expect("the tests start");
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// What [`nothing_of_the_users_is_taken`] starts.
#[test]
#[ignore = "a part of nothing_of_the_users_is_taken"]
fn as_such_a_user() {
    for mpi in mpis!() {
        let place = place();
        record(mpi, place.path());
        let kind = source_kind(&place.path().join("run"), None);
        assert_ne!(kind, "calibration", "{}", mpi.name);
    }
}
