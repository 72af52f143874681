//! `lapscope whatif` of real runs. Times are compared with bounds that a busy machine does not break; how near replays come
//! to measurements is measured by `make whatif-bench`.

use std::path::{Path, PathBuf};

use lapscope_tests::bed::Bed;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{answer, build, child, paths, say, trials};
use serde_json::Value;

/// The exit code for a scenario that never ends.
const DEADLOCK: i32 = 3;

fn an_mpi() -> &'static Mpi {
    mpi::named("openmpi").unwrap_or_else(|| mpi::all()[0])
}

/// The exit code and the document of `lapscope whatif --format json RUN ARGUMENTS`.
fn whatif(run: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = child::command(paths::lapscope())
        .args(["whatif", "--format", "json"])
        .args(arguments)
        .arg(run)
        .output()
        .expect("lapscope runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    (output.status.code().expect("an exit code"), answer)
}

fn halo(mpi: &Mpi, place: &Path) -> PathBuf {
    let program = place.join("halo");
    let output = child::command(mpi.compiler)
        .args(["-std=gnu11", "-O2", "-g", "-w", "-o"])
        .arg(&program)
        .arg(paths::root().join("examples/halo/halo.c"))
        .arg("-lm")
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn a_replayed_halo_exchange_is_as_it_was_and_a_quicker_network_is_quicker() {
    trials::up_to_three("a replayed halo exchange", a_replayed_halo_exchange);
}

fn a_replayed_halo_exchange() {
    let (mpi, place) = (an_mpi(), place());
    let bed = match Bed::SlowLink.is_there(mpi) {
        true => Bed::SlowLink,
        false => Bed::SharedMemory,
    };
    let job = bed.job(mpi, 2, halo(mpi, place.path()), place.path());
    let job = job.args(["-i", "8", "-s", "5"]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let (code, answer) = whatif(&job.run_directory(), &["--bandwidth", "x4"]);
    assert_eq!(code, 0, "{answer:#}");
    for error in ["identity_error", "identity_exposed_error"] {
        let off = answer["identity"][error].as_f64().expect("an error");
        assert!(off.abs() < 0.1, "{error} {off}: {answer:#}");
    }
    assert!(answer["model"]["messages"].as_u64().expect("a count") >= 8 * 4, "{answer:#}");
    let limits = answer["model"]["localities"].as_array().expect("localities");
    assert!(limits.iter().all(|it| it["eager_limit_from"] != "assumed"), "{answer:#}");
    let change = answer["scenarios"][0]["change"].as_f64().expect("a change");
    assert!(change < 0.0, "{change}: {answer:#}");
    let report = answer::ask("report", &job.run_directory());
    assert_eq!(report["steps"]["count"], 8, "{}", report["no_steps"]);
}

/// The answer to an eager limit of 0, after checking that the run as it was ends.
fn without_eager_messages(arguments: &[&str]) -> (i32, Value) {
    let (mpi, place) = (an_mpi(), place());
    let program = build::app(mpi, "unsafe_exchange");
    let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args(arguments);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let (code, answer) = whatif(&job.run_directory(), &["--eager-limit", "0"]);
    assert!(answer["identity"]["run_ns"].is_i64(), "{answer:#}");
    (code, answer)
}

#[test]
fn sends_head_to_head_deadlock_without_eager_messages() {
    let (code, answer) = without_eager_messages(&[]);
    let scenario = &answer["scenarios"][0];
    assert_eq!((code, &scenario["run_ns"]), (DEADLOCK, &Value::Null), "{answer:#}");
    let says = scenario["deadlock"]["says"].as_str().expect("a sentence");
    for word in ["eager limit of 0", "ranks 0 and 1 deadlock", "MPI_Send", "send_first"] {
        assert!(says.contains(word), "{word}: {says}");
    }
}

#[test]
fn an_ordered_exchange_ends_without_eager_messages() {
    let (code, answer) = without_eager_messages(&["safe"]);
    let scenario = &answer["scenarios"][0];
    assert_eq!((code, &scenario["deadlock"]), (0, &Value::Null), "{answer:#}");
    assert!(scenario["run_ns"].as_i64().expect("a run time") > 0, "{answer:#}");
}

/// The length of a run of `barriers`, and where it is.
fn barriers(place: &Path, every: &str) -> (i64, PathBuf) {
    let mpi = an_mpi();
    let place = place.join(every);
    std::fs::create_dir(&place).expect("a directory");
    let job = Job::new(mpi, 2, build::app(mpi, "barriers"), Form::Preload, &place).args([every]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let run = job.run_directory();
    let (_, answer) = whatif(&run, &["--cpu", "1"]);
    (answer["recorded"]["run_ns"].as_i64().expect("a run time"), run)
}

/// Of noise in the recorded run, as on a busy machine, a barrier that is left in takes some.
const MOST_OFF: f64 = 0.25;

#[test]
fn a_barrier_that_is_left_out_saves_what_it_saves_in_the_edited_program() {
    trials::up_to_three("what a barrier saves", || {
        let place = place();
        let (_, run) = barriers(place.path(), "1");
        for (edited, asked) in
            [("0", vec!["--without", "MPI_Barrier turn"]), ("4", vec!["--every", "4", "turn"])]
        {
            let (measured, _) = barriers(place.path(), edited);
            let (code, answer) = whatif(&run, &asked);
            assert_eq!(code, 0, "{answer:#}");
            let predicted = answer["scenarios"][0]["run_ns"].as_i64().expect("a run time");
            let off = predicted as f64 / measured as f64 - 1.0;
            let change = answer["scenarios"][0]["change"].as_f64().expect("a change");
            let notes = answer["scenarios"][0]["notes"].to_string();
            let said = format!(
                "every {edited}: predicted {predicted} ns ({change:+.2}), measured {measured} ns: {off:+.3} off; {notes}"
            );
            say!("{said}");
            assert!(off.abs() < MOST_OFF && change < -0.3, "{said}");
            let left_out = if edited == "0" { "40 of 40" } else { "30 of 40" };
            assert!(notes.contains(left_out), "{said}");
        }
    });
}

#[test]
fn what_is_no_collective_is_an_error_that_names_the_nearest() {
    let place = place();
    let (_, run) = barriers(place.path(), "1");
    // the first is one
    let said = |site: &str| {
        let output = child::command(paths::lapscope())
            .args(["whatif", "--without", "turn", "--without", site])
            .arg(&run)
            .output()
            .expect("lapscope runs");
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let unknown = said("tunr");
    assert!(
        unknown.contains("no such call site") && unknown.contains("MPI_Barrier turn barriers.c:"),
        "{unknown}"
    );
    say!("{unknown}");
}
