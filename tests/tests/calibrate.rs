//! `lapscope calibrate` under real launchers: what it writes is found again by runs that it fits, and by no others.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use lapscope_tests::bed::slow_link;
use lapscope_tests::launch::{lapscope, place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, paths, trials};
use serde_json::Value;

/// Calibrations of all tests, each in a directory of its own.
const DIRECTORY: &str = "LAPSCOPE_CALIBRATION_DIR";

/// `lapscope calibrate -- mpirun -n 2 ...`
fn calibrate(mpi: &Mpi, place: &Path, inside: Vec<OsString>, extra: &[&str]) -> Outcome {
    let words = ["--seconds", "3", "--format", "json"].map(OsStr::new);
    let job = Job::calibrate(mpi, &words, extra, place).inside(inside);
    job.env(DIRECTORY, place.join("calibrations")).run()
}

/// Where a run says that its reference times are from, and what it notes of them.
fn source(run: &Path, place: &Path) -> (String, String) {
    let output = child::command(paths::lapscope())
        .args(["overlap".as_ref(), run.as_os_str(), "--format".as_ref(), "json".as_ref()])
        .env(DIRECTORY, place.join("calibrations"))
        .output()
        .expect("lapscope runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let kind = answer["reference"]["source"]["kind"].as_str().expect("a kind of source");
    (kind.to_owned(), answer["reference"]["notes"].to_string())
}

/// Runs `tests/apps/test_loop.c` on 2 ranks and says where its reference times are from.
fn source_of_run(mpi: &Mpi, place: &Path, environment: &[(&str, &str)]) -> (String, String) {
    let here = tempfile::tempdir_in(place).expect("a directory for the run");
    let mut job = Job::new(mpi, 2, build::app(mpi, "test_loop"), Form::Preload, here.path());
    for (name, value) in environment {
        job = job.env(name, *value);
    }
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
    source(&job.run_directory(), place)
}

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().expect("a number")
}

/// Points of a path: bytes, and nanoseconds: first quartile, median, third quartile.
fn points(calibration: &Value, path: &str) -> Vec<(f64, [f64; 3])> {
    let points = calibration["times"]["localities"][path].as_array().expect("a path that is there");
    let of = |point: &Value| {
        let times = ["low_ns", "ns", "high_ns"].map(|key| number(point, key));
        (number(point, "bytes"), times)
    };
    points.iter().map(of).collect()
}

fn check_points(mpi: &Mpi, calibration: &Value, path: &str) {
    let points = points(calibration, path);
    let (first, last) = (points[0], points[points.len() - 1]);
    eprintln!(
        "{}, {path}: {} sizes, {:.0} ns for {} bytes, {:.0} ns for {} bytes",
        mpi.name,
        points.len(),
        first.1[1],
        first.0,
        last.1[1],
        last.0
    );
    assert!(first.0 <= 1.0, "{}: nothing of small messages", mpi.name);
    assert!(last.0 >= 64e3 && points.len() > 30, "{}: nothing of large messages", mpi.name);
    for (bytes, [low, middle, high]) in &points {
        assert!(0.0 < *low && low <= middle && middle <= high, "{}: {bytes} bytes", mpi.name);
    }
    for pair in points.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        assert!(before.0 < after.0, "{}: sizes rise", mpi.name);
        for (before, after) in before.1.iter().zip(after.1) {
            assert!(*before <= after, "{}: larger messages take no less", mpi.name);
        }
    }
}

/// Parameters are there, none is negative, and each lies within its interval.
fn check_loggps(mpi: &Mpi, calibration: &Value) {
    let all = calibration["loggps"].as_array().expect("parameters");
    assert_eq!(all.len(), 1, "{}: of one node alone", mpi.name);
    let loggps = &all[0];
    eprintln!("{}: L {}, S {}", mpi.name, loggps["latency_ns"], loggps["eager_limit_bytes"]);
    assert_eq!(loggps["locality"], "node");
    let within = |value: &Value| {
        let [low, estimate, high] = ["low", "estimate", "high"].map(|key| number(value, key));
        assert!(low <= estimate && estimate <= high, "{}: {value}", mpi.name);
        estimate
    };
    assert!(within(&loggps["latency_ns"]) >= 0.0);
    let segments = loggps["segments"].as_array().expect("segments");
    for segment in segments {
        let [send, receive] = ["send", "receive"].map(|key| &segment[key]["base_ns"]);
        for value in [send, receive, &segment["gap_ns"], &segment["gap_ns_per_byte"]] {
            assert!(within(value) >= 0.0, "{}: {segment}", mpi.name);
        }
        for key in ["beyond_ns", "wire_ns_per_byte"] {
            within(&segment[key]);
        }
    }
    let last = &segments[segments.len() - 1];
    assert!(within(&last["gap_ns_per_byte"]) > 0.0, "{}: bytes take time", mpi.name);
    assert!(number(last, "max_bytes") >= 64e3, "{}: {last}", mpi.name);
}

#[test]
fn a_calibration_is_found_by_runs_that_it_fits() {
    let ours = |mpi: &&Mpi| mpi.name != "mpiabi"; // the same library as mpich5
    for mpi in share!(mpi::all().iter().copied().filter(ours).collect()) {
        // one that was made while others had the processors is rightly not used
        trials::up_to_three(&format!("calibration under {}", mpi.name), || is_found(mpi));
    }
}

fn is_found(mpi: &Mpi) {
    let place = place();
    let outcome = calibrate(mpi, place.path(), Vec::new(), &[]);
    assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
    let calibration: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone on stdout");
    for path in ["self", "node"] {
        check_points(mpi, &calibration, path);
    }
    check_loggps(mpi, &calibration);
    for call in ["MPI_Barrier", "MPI_Bcast", "MPI_Allreduce"] {
        assert!(calibration["times"]["collectives"][call]["2"].is_array(), "{}: {call}", mpi.name);
    }
    let left: Vec<_> = std::fs::read_dir(place.path()).expect("a directory").flatten().collect();
    assert_eq!(left.len(), 1, "{}: nothing but the calibration is left: {left:?}", mpi.name);

    let (kind, notes) = source_of_run(mpi, place.path(), &[]);
    assert_eq!(kind, "calibration", "{}: {notes}", mpi.name);
    if mpi.abi == "openmpi" {
        let (kind, notes) = source_of_run(mpi, place.path(), &[("OMPI_MCA_btl", "tcp,self")]);
        assert_ne!(kind, "calibration", "{}", mpi.name);
        assert!(notes.contains("this run with OMPI_MCA_btl=self,tcp"), "{}: {notes}", mpi.name);
    }
}

#[test]
fn a_slow_link_takes_as_long_as_its_rate_says() {
    trials::up_to_three("calibration of a slow link", a_slow_link);
}

fn a_slow_link() {
    let Some(mpi) = mpi::named("openmpi") else { return };
    let Some(inside) = slow_link() else { return };
    let place = place();
    let line = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"];
    let outcome = calibrate(mpi, place.path(), inside, &line);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let calibration: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let set = &calibration["environment"]["OMPI_MCA_btl"];
    assert_eq!(set, "self,tcp", "the launch line's settings are kept");
    let four_mib = f64::from(4 << 20);
    let points = points(&calibration, "node");
    let at = points.iter().find(|(bytes, _)| *bytes == four_mib).expect("4 MiB was measured");
    let (least, nominal) = ((four_mib - 256e3) / 0.2, four_mib / 0.2); // 0.2 bytes a nanosecond, 256 KB at once
    let took = at.1[1];
    eprintln!(
        "4 MiB over the slow link: {:.2} ms, by its rate {:.2} ms",
        took / 1e6,
        nominal / 1e6
    );
    assert!(took >= least, "faster than the link");
    assert!(took <= 10.0 * nominal, "something else was measured than the link");
    // several go one after the other, and both directions over one medium
    let at_once = calibration["times"]["at_once"]["node"].as_array().expect("several at once");
    let of = |messages: u64, both_ways: bool| {
        let is_it = |row: &&Value| {
            (row["bytes"].as_u64(), row["messages"].as_u64(), row["both_ways"].as_bool())
                == (Some(2 << 20), Some(messages), Some(both_ways))
        };
        number(at_once.iter().find(is_it).expect("2 MiB were measured"), "ns")
    };
    let (several, both_ways) = (of(4, false) / of(1, false), of(1, true) / of(1, false));
    eprintln!(
        "4 messages take {several:.2} times as long as one, one each way {both_ways:.2} times"
    );
    assert!(several > 3.0 && both_ways > 1.5, "{several} {both_ways}");
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let Some(mpi) = mpi::all().first() else { return };
    let place = place();
    let outcome = calibrate(mpi, place.path(), Vec::new(), &["/bin/true"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.said.iter().any(|line| line.contains("leave out the program")), "{outcome:?}");
    assert!(!place.path().join("calibrations").exists());
    let help = lapscope(["calibrate", "--help"]);
    assert!(help.contains("lapscope calibrate -- mpirun -n 2"), "{help}");
}

/// Limits that MPI declares, without the application having asked for them; of MPIs that take theirs from the environment
/// alone, what that says.
#[test]
fn control_variables_are_those_of_the_runs_settings() {
    for (name, variable, setting) in [
        ("openmpi", "btl_vader_eager_limit", "OMPI_MCA_btl_vader_eager_limit"),
        ("openmpi5", "btl_sm_eager_limit", "OMPI_MCA_btl_sm_eager_limit"),
        ("mpich", "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE", "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE"),
    ] {
        let by = if name == "mpich" { "environment" } else { "control_variable" };
        let Some(mpi) = mpi::named(name) else { continue };
        let place = place();
        let job = Job::new(mpi, 2, build::app(mpi, "test_loop"), Form::Preload, place.path())
            .env(setting, "3000");
        assert_eq!(job.run().code, 0, "{name}");
        let run = job.run_directory();
        let text = lapscope([
            "thresholds".as_ref(),
            run.as_os_str(),
            "--format".as_ref(),
            "json".as_ref(),
        ]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let declared = answer["declared"].as_array().expect("a list");
        let is_it = |entry: &&Value| entry["name"] == variable && entry["by"] == by;
        let entry = declared.iter().find(is_it).unwrap_or_else(|| panic!("{name}: no {variable}"));
        assert_eq!(entry["value"], "3000", "{name}");
    }
}
