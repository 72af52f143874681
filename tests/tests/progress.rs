//! `lapscope doctor --progress` under real launchers: what moves while ranks compute, and what advice makes of it.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::{json, Value};

use lapscope_fixture::documented;
use lapscope_tests::answer::{number, rows, text};
use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, paths, trials};

/// Kept in a directory of the test's.
const DIRECTORY: &str = "LAPSCOPE_CALIBRATION_DIR";

fn measure(mpi: &Mpi, extra: &[&str], place: &Path) -> Outcome {
    let job = Job::alone(paths::lapscope(), Form::Bare, place)
        .args(["doctor", "--progress", "--format", "json", "-o", "progress.json", "--"])
        .args(mpi.launch_line(2, &[]))
        .args(extra)
        .limit(Duration::from_secs(60))
        .env(DIRECTORY, place.join("calibrations"));
    mpi.environment.iter().fold(job, |job, (name, value)| job.env(name, *value)).run()
}

fn answer(mpi: &Mpi, extra: &[&str], place: &Path) -> Value {
    let outcome = measure(mpi, extra, place);
    assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone on stdout");
    documented::check(&outcome.stdout);
    for row in rows(&answer, "moved") {
        let [low, moved, high] = ["moved_low", "moved", "moved_high"].map(|key| number(row, key));
        assert!(0.0 <= low && low <= moved && moved <= high && high <= 1.0, "{row}");
        assert!(number(row, "alone_ns") > 0.0, "{row}");
    }
    answer
}

fn moved(answer: &Value, posted: &str, computing: &str) -> f64 {
    let is_it = |row: &&Value| text(row, "posted") == posted && text(row, "computing") == computing;
    let row = rows(answer, "moved").iter().find(is_it);
    number(row.unwrap_or_else(|| panic!("no {posted} {computing} in {answer:#}")), "moved")
}

/// A sender needs nobody for small messages. A receiver that computes reads from no memory that is not its own; one that asks
/// for a message first has nothing of it.
#[test]
fn what_moves_while_ranks_compute() {
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("progress under {}", mpi.name), || {
            let place = place();
            let answer = answer(mpi, &[], place.path());
            let small = moved(&answer, "small_send", "first");
            let large = moved(&answer, "send", "second");
            println!("{}: small {small:.3}, large {large:.3}", mpi.name);
            assert!(small > 0.5, "{}: {answer:#}", mpi.name);
            assert!(large < 0.5, "{}: {answer:#}", mpi.name);
            for posted in ["put", "put_allocated", "iallreduce", "ibcast"] {
                moved(&answer, posted, "second");
            }
        });
    }
}

#[test]
fn over_tcp_a_rendezvous_needs_both_ends() {
    let Some(mpi) = mpi::named("openmpi") else { return };
    trials::up_to_three("progress over TCP", || {
        let place = place();
        let answer = answer(mpi, &["--mca", "btl", "tcp,self"], place.path());
        let small = moved(&answer, "small_send", "first");
        let large = ["first", "second", "both"].map(|who| moved(&answer, "send", who));
        println!("over TCP: small {small:.3}, large {large:.3?}");
        assert!(small > 0.75, "{answer:#}");
        assert!(large.iter().all(|moved| *moved < 0.25), "{answer:#}");
        assert_eq!(text(&answer["environment"], "OMPI_MCA_btl"), "self,tcp");
        let typed = text(&answer["setting"], "typed");
        assert_eq!(typed, "export OMPI_MCA_btl_tcp_progress_thread=1");
    });
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let Some(mpi) = mpi::all().first() else { return };
    let place = place();
    for (extra, says) in [
        (&["/bin/true"][..], "leave out the program (/bin/true)"),
        (&["--no-such-option"], "as in: lapscope doctor --progress -- mpirun -n 2"),
    ] {
        let outcome = measure(mpi, extra, place.path());
        assert_ne!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.said.iter().any(|line| line.contains(says)), "{says}: {outcome:?}");
    }
    // what is no launcher starts a rank of its own, or nothing
    let job = Job::alone(paths::lapscope(), Form::Bare, place.path()).args([
        "doctor",
        "--progress",
        "--",
        "env",
    ]);
    let outcome = job.run();
    let says = "lapscope doctor --progress -- mpirun -n 2";
    assert!(outcome.said.iter().any(|line| line.contains(says)), "{outcome:?}");
    assert_ne!(outcome.code, 0, "{outcome:?}");
    assert!(!place.path().join("progress.json").exists());
}

/// The first sentence of this cure in a report that finds `measured`.
fn sentence(run: &Path, place: &Path, measured: Option<&Value>) -> String {
    let directory = tempfile::tempdir_in(place).expect("a directory");
    if let Some(measured) = measured {
        let kept = directory.path().join("progress");
        std::fs::create_dir(&kept).expect("a directory");
        std::fs::write(kept.join("made.json"), measured.to_string()).expect("a file");
    }
    let output = child::command(paths::lapscope())
        .args([OsStr::new("report"), run.as_os_str(), "--format".as_ref(), "json".as_ref()])
        .env(DIRECTORY, directory.path())
        .output()
        .expect("lapscope runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["progress"].is_null(), measured.is_none());
    std::fs::remove_file(run.join("progress.json")).ok();
    let mut advice = rows(&report, "advice").iter();
    let found = advice.find(|advice| text(advice, "cure") == "progress_target");
    text(found.unwrap_or_else(|| panic!("{:#}", report["advice"])), "sentence").to_owned()
}

/// Of MPICH the target of one-sided calls has to be inside MPI: certain where that was measured, here with made numbers.
#[test]
fn advice_on_targets_is_certain_where_progress_was_measured() {
    let Some(mpi) = mpi::named("mpich") else { return };
    trials::up_to_three("advice on targets", || {
        let place = place();
        let job = Job::new(mpi, 2, build::app(mpi, "field/onesided"), Form::Preload, place.path());
        assert_eq!(job.run().code, 0);
        let run = job.run_directory();
        let mut measured = answer(mpi, &[], place.path());
        measured["processor_share"] = Value::Null;
        let mut with = |share: f64| {
            for row in measured["moved"].as_array_mut().expect("rows") {
                for key in ["moved_low", "moved", "moved_high"] {
                    row[key] = json!(share);
                }
            }
            sentence(&run, place.path(), Some(&measured))
        };
        let [still, moves] = [with(0.0), with(1.0)];
        let unknown = sentence(&run, place.path(), None);
        println!("{unknown}\n{still}\n{moves}");
        assert!(unknown.contains("perhaps one-sided data move only then here"), "{unknown}");
        let number = "one-sided data move only then here (measured: 0.0 % of an MPI_Put";
        assert!(still.contains(number), "{still}");
        assert!(moves.contains("perhaps the lock is given only then here"), "{moves}");
    });
}
