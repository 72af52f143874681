//! Records of jobs (`LAPSCOPE_RECORD=job`) are read as runs are.

use std::fs;
use std::path::Path;

use crate::fixture::{json, lapscope, text, READING};
use lapscope_fixture::records;
use serde_json::json;

const NAME: &str = "job-12345678-node1.lapscope-job";

fn run() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join(NAME), records::halo().text()).expect("a file");
    place
}

fn report(place: &Path, named: &str) -> serde_json::Value {
    json(place, &["report", named])
}

/// Ranks waited 2 and 3 s of 10.
#[test]
fn a_record_has_a_report() {
    let place = run();
    for named in [NAME, "."] {
        let report = report(place.path(), named);
        assert_eq!(report["totals"]["exposed_ns"], json!(5_000_000_000i64));
        assert_eq!(report["totals"]["requests"], json!(4000));
        let ranks = report["ranks"].as_array().expect("ranks");
        let exposed: Vec<_> = ranks.iter().map(|rank| &rank["exposed_ns"]).collect();
        assert_eq!(exposed, [&json!(2_000_000_000i64), &json!(3_000_000_000i64)]);
        let problems = report["problems"].to_string();
        assert!(problems.contains("LAPSCOPE_RECORD=job") && !problems.contains("at most"));
    }
    let said = text(&lapscope(place.path(), &["report", NAME]).stdout);
    for word in ["25.1 % of the run time", "sums alone were kept", "MPI_Isend", "is not known"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("Nothing as it stands"), "{said}");
    assert_eq!(said.matches("at most").count(), 1, "{said}");
    let next = said.split("NEXT").nth(1).expect("what to do next");
    assert!(next.contains("lapscope run --"), "{next}");
    for cannot_help in ["requests", "overlap ", "hang", "whatif"] {
        assert!(!next.contains(&format!("lapscope {cannot_help}")), "{cannot_help}: {next}");
    }
    let refused = lapscope(place.path(), &["whatif", NAME]);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("lapscope run --"), "{said}");
}

/// What has no place in the tables of a run, and ends that are not known.
#[test]
fn what_a_record_alone_knows_is_said() {
    const SECOND: i64 = 1_000_000_000;
    let place = tempfile::tempdir().expect("a directory");
    let mut made = records::halo();
    made.record.is_last = 0;
    made.ranks[1].ended = "running";
    for (name, value) in [("accelerator", "libcuda"), ("cuda", "unused")] {
        made.settings.push(records::Setting { kind: "option", name, value });
    }
    for site in &mut made.sites {
        site.error_ns = SECOND / 10;
    }
    let rest = records::Site {
        call: "MPI_Send",
        frame: None,
        count: 10,
        inside_ns: 2 * SECOND,
        at_once: 4,
        most_bytes_at_once: 4096,
        least_bytes_waiting: Some(8192),
        ..records::Site::default()
    };
    made.sites.push(rest);
    made.injectors.push(records::Injector {
        mode: "auto",
        processes: 2,
        requests: 50,
        tests: 40,
        found: 30,
        automatic: Some("{\"seconds\":9.0,\"gain\":{\"share\":0.1}}"),
        ..records::Injector::default()
    });
    fs::write(place.path().join(NAME), made.text()).expect("a file");
    let report = report(place.path(), NAME);
    let problems = report["problems"].to_string();
    for expected in [
        "1 rank still ran when the record was written, 10.0 s after they began; nothing was written since, so they ended without MPI_Finalize",
        "of 7.02 s in MPI, sum of all ranks, the places of 2.00 s (28.5 %) are not known; a site that has a place may have up to 100 ms of it",
        "the largest that took less than 10 µs inside MPI had 4.00 KiB, the smallest that took longer 8.00 KiB",
        "40 tests for 50 requests, of which 30 moved something",
        "they saved 10.0 % of the time without them",
        "did not reach MPI_Finalize as far as its record knows",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
    assert!(!problems.contains("killed"), "{problems}");
    assert!(
        problems.contains("(LAPSCOPE_RECORD=job), and sums leave out when GPUs worked"),
        "{problems}"
    );
    assert_eq!(report["summary"]["exposed_is_upper_bound"], json!(true));
}

/// Every command that reads a run answers, or says why it cannot.
#[test]
fn all_commands_read_it() {
    let place = run();
    for command in READING {
        let command: Vec<&str> =
            command.iter().map(|word| if *word == "." { NAME } else { word }).collect();
        let output = lapscope(place.path(), &command);
        let said = text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 3), "{command:?}: {said}");
        assert!(
            !said.contains("panicked") && !said.contains("lapscope-copies"),
            "{command:?}: {said}"
        );
    }
}

#[test]
fn a_gate_holds_it_against_limits() {
    let place = run();
    for (limit, code) in [("exposed=26%", 0), ("exposed=25%", 1)] {
        let output = lapscope(place.path(), &["check", NAME, "--max", limit]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stdout));
    }
}

#[test]
fn what_is_no_record_is_named() {
    let place = run();
    let whole = records::halo().text();
    for (broken, why) in [
        (whole.replace("summary", "other"), "column reason"),
        (whole.replace("[end]\n", ""), "cut short"),
        (whole.replace("record 1\n", "record 9\n"), "another version"),
        (String::new(), "is not the record of a job"),
    ] {
        fs::write(place.path().join(NAME), broken).expect("a file");
        let output = lapscope(place.path(), &["report", NAME]);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why) && said.contains(NAME), "{said}");
    }
}
