//! Which reference times a report uses, with calibration files written by hand.

mod fixture;
#[allow(dead_code)] // uses a part
#[path = "fixture/rows.rs"]
mod rows;

use std::path::Path;
use std::process::Output;

use fixture::Rank;
use serde_json::Value;

/// As docs/json.md describes it: 2 µs for 1000 bytes between ranks of one node.
const CALIBRATION: &str = r#"{
  "format": 1, "created": "2026-05-04T12:30:00Z", "lapscope_version": "0.1.0",
  "launch": ["mpirun", "-n", "2"], "ranks": 2,
  "hosts": ["HOST"], "mpi_library": "Open MPI v4.1.4, package: x", "environment": {ENVIRONMENT},
  "times": {
    "paths": {"node": [{"bytes": 1000.0, "ns": 2000.0, "low_ns": 1500.0, "high_ns": 2600.0, "samples": 12}]},
    "collectives": {"MPI_Barrier": {"2": [{"bytes": 0.0, "ns": 900.0, "low_ns": 800.0, "high_ns": 1000.0, "samples": 9}]}}
  }
}"#;

fn run(arguments: &[&str], calibrations: &Path) -> Output {
    let run = fixture::small_run();
    fixture::child::command(env!("CARGO_BIN_EXE_lapscope"))
        .args(arguments)
        .arg(run.path())
        .env("LAPSCOPE_CALIBRATION_DIR", calibrations)
        .output()
        .unwrap()
}

/// What `lapscope overlap` says of its reference times when this file is the only calibration.
fn reference(host: &str, environment: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let text = CALIBRATION.replace("HOST", host).replace("ENVIRONMENT", environment);
    std::fs::write(directory.path().join("some.json"), text).unwrap();
    let output = run(&["overlap", "--format", "json"], directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["reference"].take()
}

#[test]
fn a_calibration_that_fits_is_the_source() {
    let reference = reference("node1", "");
    assert_eq!(reference["source"]["kind"], "calibration");
    assert_eq!(reference["source"]["created"], "2026-05-04T12:30:00Z");
    assert_eq!(reference["paths"][0]["path"], "node");
    assert_eq!(reference["paths"][0]["samples"], 12);
    assert_eq!(reference["paths"][0]["spread"], 0.55);
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
    let output = run(&["overlap"], directory.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("torn.json"), "{text}");
}

/// Four messages of 32 MiB, which nothing delays: rank 1 is there early, rank 0 waits at once. 12 ms each.
fn run_of_large_messages(directory: &Path) {
    const BYTES: i64 = 32 << 20;
    let (mut sender, mut receiver) = (rows::Rows::new(0), rows::Rows::new(1));
    for t in (0..4).map(|round| round * 20_000_000) {
        let request = ((1, "send", BYTES, 1, 7), t + 500_000, 1_000, 0);
        sender.complete(3, t + 501_100, 11_998_900, &[request]);
        let request = ((2, "recv", BYTES, 0, 7), t + 490_000, 1_000, 0);
        receiver.complete(3, t + 491_100, 12_008_900, &[request]);
    }
    for (number, rows) in [(0, &sender), (1, &receiver)] {
        let rank = Rank {
            epoch_ns: 0,
            init_end_ns: 0,
            end_ns: 100_000_000,
            summarized: false,
            ..Rank::new(1)
        };
        Rank { rank: number, ..rank }.write(directory, &rows.sql());
    }
}

/// A calibration says nothing of larger messages than it has: their times are the run's own, as without it.
#[test]
fn sizes_that_a_calibration_does_not_have_are_the_runs_own() {
    let run = tempfile::tempdir().unwrap();
    run_of_large_messages(run.path());
    let ask =
        |arguments: &[&str]| fixture::json(run.path(), &[&["overlap", "."], arguments].concat());
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
        assert_eq!(totals["transfer_ns"], alone["totals"]["transfer_ns"]);
        let node = &reference["paths"][0];
        assert_eq!((&node["min_bytes"], &node["max_bytes"]), (&1000.into(), &(32 << 20).into()));
        let of_run = serde_json::json!({"sizes": 1, "min_bytes": 32 << 20, "max_bytes": 32 << 20});
        assert_eq!(node["of_run"], of_run);
        let notes = reference["notes"].to_string();
        assert!(notes.contains("what it lacks, 32.0 MiB, is from the run itself"), "{notes}");
    }
}
