//! Which reference times a report uses, with calibration files written by hand.

use std::path::Path;

use lapscope_fixture::edit_rank;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::small::run as small_run;
use lapscope_fixture::tables::{Processor, Rank, Starvation};
use serde_json::Value;

/// As docs/json.md describes it: 2 µs for 1000 bytes between ranks of one node.
const CALIBRATION: &str = r#"{
  "format": 3, "created": "2026-05-04T12:30:00Z", "lapscope_version": "0.1.0",
  "launch": ["mpirun", "-n", "2"], "ranks": 2,
  "hosts": ["HOST"], "mpi_library": "Open MPI v4.1.4, package: x", "environment": {ENVIRONMENT},
  "times": {
    "localities": {"node": [{"bytes": 1000.0, "ns": 2000.0, "low_ns": 1500.0, "high_ns": 2600.0, "samples": 12}]},
    "collectives": {"MPI_Barrier": {"2": [{"bytes": 0.0, "ns": 900.0, "low_ns": 800.0, "high_ns": 1000.0, "samples": 9}]}}
  }
}"#;

fn answer(arguments: &[&str], calibrations: &Path) -> String {
    let run = small_run();
    let mut command = crate::fixture::bare(arguments);
    crate::fixture::printed(command.arg(run.path()).env("LAPSCOPE_CALIBRATION_DIR", calibrations))
}

/// What `lapscope overlap` says of its reference times when this file is the only calibration.
fn reference(host: &str, environment: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let text = CALIBRATION.replace("HOST", host).replace("ENVIRONMENT", environment);
    std::fs::write(directory.path().join("some.json"), text).unwrap();
    let text = answer(&["overlap", "--format", "json"], directory.path());
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    answer["reference"].take()
}

#[test]
fn a_calibration_that_fits_is_the_source() {
    let reference = reference("node1", "");
    assert_eq!(reference["source"]["kind"], "calibration");
    assert_eq!(reference["source"]["created"], "2026-05-04T12:30:00Z");
    assert_eq!(reference["localities"][0]["locality"], "node");
    assert_eq!(reference["localities"][0]["samples"], 12);
    assert_eq!(reference["localities"][0]["spread"], 11.0 / 26.0);
}

#[test]
fn nodes_of_the_same_kind_will_do_and_are_named() {
    let reference = reference("node7", "");
    assert_eq!(reference["source"]["kind"], "calibration");
    assert!(reference["notes"].to_string().contains("on other nodes of this kind: node7"));
}

#[test]
fn other_settings_and_other_hosts_will_not() {
    let tcp = reference("node1", r#""OMPI_MCA_btl": "tcp,self""#);
    assert_ne!(tcp["source"]["kind"], "calibration");
    let notes = tcp["notes"].to_string();
    assert!(
        notes.contains("made with OMPI_MCA_btl=tcp,self, this run with OMPI_MCA_btl not set"),
        "{notes}"
    );
    let elsewhere = reference("login", "");
    assert_ne!(elsewhere["source"]["kind"], "calibration");
    assert!(!elsewhere["notes"].to_string().contains("some.json"));
}

#[test]
fn a_damaged_file_is_named_and_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("torn.json"), &CALIBRATION[..200]).unwrap();
    let text = answer(&["overlap"], directory.path());
    assert!(text.contains("torn.json"), "{text}");
}

/// Messages that nothing delays: rank 1 is there early, rank 0 waits at once. So many of that size, each so many nanoseconds.
fn run_of(directory: &Path, messages: i64, bytes: i64, ns: i64) {
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    for t in (0..messages).map(|round| round * 20_000_000) {
        let request = (("MPI_Isend", "send", bytes, 1, 7), t + 500_000, 1_000, 0);
        sender.complete("MPI_Waitall", t + 501_100, ns - 1_100, &[request]);
        let request = (("MPI_Irecv", "recv", bytes, 0, 7), t + 490_000, 1_000, 0);
        receiver.complete("MPI_Waitall", t + 491_100, ns + 8_900, &[request]);
    }
    for (number, rows) in [(0, &sender), (1, &receiver)] {
        let rank = Rank { end_ns: 200_000_000, ..Rank::plain(number) };
        rank.write(directory, |file| rows.write(file));
    }
}

/// A calibration says nothing of larger messages than it has: their times are the run's own, as without it.
#[test]
fn sizes_that_a_calibration_does_not_have_are_the_runs_own() {
    let run = tempfile::tempdir().unwrap();
    run_of(run.path(), 4, 32 << 20, 12_000_000);
    let ask = |arguments: &[&str]| {
        crate::fixture::json(run.path(), &[&["overlap", "."], arguments].concat())
    };
    let alone = ask(&[]);
    assert_eq!(alone["reference"]["source"]["kind"], "run");
    assert_eq!(
        (&alone["totals"]["requests"], &alone["totals"]["measured"]),
        (&8.into(), &8.into())
    );

    let file = run.path().join("calibrations/some.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, CALIBRATION.replace("HOST", "node1").replace("ENVIRONMENT", "")).unwrap();
    for answer in [ask(&[]), ask(&["--reference", file.to_str().unwrap()])] {
        let (reference, totals) = (&answer["reference"], &answer["totals"]);
        assert_eq!(reference["source"]["kind"], "calibration");
        assert_eq!(totals["measured"], 8, "{reference:#}");
        assert_eq!(totals["reference_ns"], alone["totals"]["reference_ns"]);
        let node = &reference["localities"][0];
        assert_eq!((&node["min_bytes"], &node["max_bytes"]), (&1000.into(), &(32 << 20).into()));
        let of_run = serde_json::json!({"sizes": 1, "min_bytes": 32 << 20, "max_bytes": 32 << 20});
        assert_eq!(node["of_run"], of_run);
        let notes = reference["notes"].to_string();
        assert!(notes.contains("what it lacks, 32.0 MiB, is from the run itself"), "{notes}");
    }
}

/// Calibrated were 685 us. Eight of the run's own took 534 us with nothing in between, and so do all; of seven that may be
/// chance, and 2 ms are no reason to believe that all take as long.
#[test]
fn of_a_calibration_and_a_run_the_quicker_is_believed() {
    let calibrations = tempfile::tempdir().unwrap();
    let text = CALIBRATION.replace("HOST", "node1").replace("ENVIRONMENT", "");
    let point = r#""ns": 2000.0, "low_ns": 1500.0, "high_ns": 2600.0"#;
    let slow = text.replace(point, r#""ns": 685000.0, "low_ns": 650000.0, "high_ns": 720000.0"#);
    assert_ne!(text, slow);
    let file = calibrations.path().join("some.json");
    std::fs::write(&file, slow).unwrap();
    let ask = |messages, ns| {
        let run = tempfile::tempdir().unwrap();
        run_of(run.path(), messages, 1_000, ns);
        let wanted = ["overlap", ".", "--reference", file.to_str().unwrap()];
        let answer = crate::fixture::json(run.path(), &wanted);
        assert_eq!(answer["reference"]["source"]["kind"], "calibration");
        let taken = answer["totals"]["reference_ns"].as_i64().unwrap() / (2 * messages);
        (taken, answer["reference"]["notes"].to_string())
    };
    let (taken, notes) = ask(8, 534_000);
    assert_eq!(taken, 534_000);
    assert!(notes.contains("8 undisturbed ones of this run take 534 µs"), "{notes}");
    assert!(notes.contains("calibrated ones 685 µs: no transfer is quicker than"), "{notes}");
    let (taken, notes) = ask(7, 534_000);
    assert_eq!((taken, notes.contains("calibrated ones")), (685_000, false), "{notes}");
    let (taken, notes) = ask(8, 2_000_000);
    assert_eq!((taken, notes.contains("the calibration is believed")), (685_000, true), "{notes}");
}

/// Whoever reads the run reads it by the same times, with every command; a newer calibration of this machine is preferred,
/// and the run's own copy to none.
#[test]
fn a_run_takes_its_calibration_along() {
    let (run, calibrations) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run_of(run.path(), 4, 1_000, 534_000);
    let file = calibrations.path().join("some.json");
    let text = CALIBRATION.replace("HOST", "node1").replace("ENVIRONMENT", "");
    std::fs::write(&file, &text).unwrap();
    let kept = run.path().join("calibration.json");
    let ask = |command: &str, calibrations: &Path| {
        let mut command = crate::fixture::bare(&[command, "--format", "json"]);
        command.arg(run.path()).env("LAPSCOPE_CALIBRATION_DIR", calibrations);
        serde_json::from_str::<Value>(&crate::fixture::printed(&mut command)).unwrap()
    };
    let here = ask("report", calibrations.path());
    let read = |file: &Path| {
        serde_json::from_str::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap()
    };
    let copy = read(&kept);
    assert_eq!(copy["times"]["collectives"], read(&file)["times"]["collectives"]);
    assert_eq!(copy["found_by"], serde_json::json!({ "file": file }));
    let notes = here["overlap"]["reference"]["notes"].to_string();
    assert!(notes.contains("did not come with the run: a report took"), "{notes}");
    assert_eq!(here["overlap"]["reference"]["source"]["file"], kept.to_str().unwrap());
    let elsewhere = run.path().join("nothing");
    assert_eq!(ask("report", &elsewhere), here);
    for command in ["overlap", "reach"] {
        let reference = &ask(command, &elsewhere)["reference"];
        assert_eq!(reference, &here["overlap"]["reference"], "{command}");
    }
    let model = |calibrations| {
        let mut model = ask("whatif", calibrations)["model"].take();
        model["replay_ns"].take();
        model
    };
    assert_eq!(model(&elsewhere), model(calibrations.path()));

    std::fs::write(&file, text.replace("2026-05-04", "2026-05-05")).unwrap();
    let newer = ask("overlap", calibrations.path());
    assert_eq!(newer["reference"]["source"]["created"], "2026-05-05T12:30:00Z");
    assert_eq!(read(&kept)["found_by"]["instead_of"], "2026-05-04T12:30:00Z");
    assert_eq!(ask("overlap", &elsewhere)["reference"], newer["reference"]);

    std::fs::remove_file(&kept).unwrap();
    std::os::unix::fs::symlink(&file, &kept).unwrap();
    let linked = ask("overlap", &elsewhere);
    assert_eq!(linked["reference"]["source"]["kind"], "run");
    let notes = linked["reference"]["notes"].to_string();
    assert!(notes.contains("calibration.json: a link to"), "{notes}");
}

/// The run's own calibration was refused. An older one of the reader's is used and named, and does not take its place; a newer
/// one does.
#[test]
fn a_refused_calibration_is_replaced_by_no_other_in_silence() {
    let (run, calibrations) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run_of(run.path(), 4, 1_000, 534_000);
    let text = CALIBRATION.replace("HOST", "node1").replace("ENVIRONMENT", "");
    let kept = run.path().join("calibration.json");
    let refused = text.replace(r#""times": {"#, r#""times": {"processor_share": 0.5,"#);
    std::fs::write(&kept, &refused).unwrap();
    let ask = |command: &[&str]| {
        let mut command = crate::fixture::bare(command);
        command.arg(run.path()).env("LAPSCOPE_CALIBRATION_DIR", calibrations.path());
        crate::fixture::printed(&mut command)
    };
    let reference = || {
        let answer = ask(&["report", "--format", "json"]);
        serde_json::from_str::<Value>(&answer).unwrap()["overlap"]["reference"].take()
    };
    let notes = |reference: &Value| reference["notes"].to_string();
    let alone = reference();
    assert_eq!(alone["source"]["kind"], "run");
    assert_eq!(alone["refused"]["processor_share"], 0.5);
    assert!(
        notes(&alone).contains("the calibration of 2026-05-04T12:30:00Z is not used"),
        "{alone}"
    );
    assert!(notes(&alone).contains("nothing else running there"), "{alone}");

    let file = calibrations.path().join("some.json");
    std::fs::write(&file, text.replace("2026-05-04", "2026-05-03")).unwrap();
    let older = reference();
    assert_eq!(older["source"]["file"], file.to_str().unwrap());
    assert!(
        notes(&older).contains("the calibration of 2026-05-04T12:30:00Z is not used"),
        "{older}"
    );
    assert!(notes(&older).contains(&format!("a report took {}", file.display())), "{older}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), refused);

    std::fs::write(&file, text.replace("2026-05-04", "2026-05-05")).unwrap();
    let newer = reference();
    assert_eq!(
        (&newer["refused"], &newer["source"]["file"]),
        (&Value::Null, &kept.to_str().into())
    );
    assert!(notes(&newer).contains("did not come with the run"), "{newer}");
}

/// A copy in a run of somebody else may hold anything.
#[test]
fn numbers_that_no_clock_measured_are_left_out() {
    let run = tempfile::tempdir().unwrap();
    run_of(run.path(), 4, 1_000, 534_000);
    let text = CALIBRATION.replace("HOST", "node1").replace("ENVIRONMENT", "");
    for (from, to) in [("2000.0", "1e300"), ("2000.0", "-5.0"), ("1000.0", "1e200")] {
        let text = text.replace("2026-05-04", "\\u001b[31m").replace(from, to);
        std::fs::write(run.path().join("calibration.json"), text).unwrap();
        let report = crate::fixture::answer(run.path(), &["report", "."]);
        assert!(!report.contains('\u{1b}'), "{report}");
        crate::fixture::answer(run.path(), &["whatif", "."]);
    }
}

/// Times of ranks that lacked a processor are told to be such, and say nothing of how little a transfer takes.
#[test]
fn reference_times_of_a_disturbed_run_are_said_to_be_such() {
    let run = tempfile::tempdir().unwrap();
    run_of(run.path(), 8, 1_000, 534_000);
    let spread = |answer: &Value| answer["reference"]["localities"][0]["spread"].as_f64();
    let quiet = crate::fixture::json(run.path(), &["overlap", "."]);
    assert_eq!((&quiet["reference"]["processor_share"], spread(&quiet)), (&Value::Null, Some(0.0)));
    for rank in [0, 1] {
        edit_rank(run.path(), rank, |file| {
            let (run_ns, wait_ns) = (50_000_000, 150_000_000);
            file.insert(Processor { run_ns, wait_ns, ..Processor::default() });
        });
    }
    let disturbed = crate::fixture::json(run.path(), &["overlap", "."]);
    assert_eq!(disturbed["reference"]["processor_share"], 0.25);
    assert_eq!(spread(&disturbed), None, "{:#}", disturbed["reference"]);
    let notes = disturbed["reference"]["notes"].to_string();
    assert!(notes.contains("had a processor for only 25.0 % of the time"), "{notes}");

    // who concludes nothing from times does not say so again
    let says = |asked: &[&str]| {
        crate::fixture::remarks(run.path(), asked).contains("had a processor for only")
    };
    assert!(says(&["thresholds", "."]));
    for asked in
        [&["sites", "."][..], &["requests", "."], &["export", "perfetto", ".", "-o", "a.json"]]
    {
        assert!(!says(asked), "{asked:?}");
    }

    // rank 1 lacked it in the first half alone: the four messages of the second half tell
    edit_rank(run.path(), 1, |file| {
        file.insert(Starvation { begin_ns: 0, end_ns: 80_000_000, wait_ns: 60_000_000 });
    });
    let half = crate::fixture::json(run.path(), &["overlap", "."]);
    let reference = &half["reference"];
    assert_eq!((&reference["processor_share"], &reference["samples"]), (&Value::Null, &4.into()));
    assert_eq!(spread(&half), Some(0.0));
}
