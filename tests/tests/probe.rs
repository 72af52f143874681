//! `lapscope thresholds --probe` under real launchers: a limit that the MPI was told is found by lapscope's own program.

use std::ffi::OsString;
use std::time::Duration;

use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{paths, trials};
use serde_json::Value;

/// MPIs count their headers into the limit.
const HEADERS: u64 = 128;

/// The limits between two ranks of this machine.
fn probe(mpi: &Mpi, extra: &[&str], variable: (&str, u64)) -> Value {
    let place = place();
    let mut line = mpi.launch_line(2, &[]);
    line.extend(extra.iter().map(OsString::from));
    let words = ["thresholds", "--probe", "--seconds", "20", "--format", "json", "--"];
    let mut job = Job::alone(paths::lapscope(), Form::Bare, place.path())
        .args(words)
        .args(line)
        .limit(Duration::from_secs(180))
        .env(variable.0, variable.1.to_string());
    for (name, value) in mpi.environment {
        job = job.env(name, *value);
    }
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let left: Vec<_> = std::fs::read_dir(place.path())
        .expect("the directory is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(".lapscope"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "the run is removed");
    let paths = answer["localities"].as_array().expect("localities");
    let node = paths.iter().find(|path| path["locality"] == "node");
    node.unwrap_or_else(|| panic!("no path between ranks of a node: {answer:#}")).clone()
}

fn check(mpi: &str, extra: &[&str], variable: &str, limits: &[u64]) {
    let Some(mpi) = mpi::named(mpi) else { return };
    for &limit in limits {
        trials::up_to_three(&format!("{variable} = {limit}"), || {
            check_limit(mpi, extra, variable, limit)
        });
    }
}

fn check_limit(mpi: &Mpi, extra: &[&str], variable: &str, limit: u64) {
    let found = probe(mpi, extra, (variable, limit));
    let completion = &found["rendezvous"];
    println!("{}, {variable} = {limit}: {}", mpi.name, completion["sentence"]);
    let size = |key: &str| completion[key].as_u64().unwrap_or_else(|| panic!("{found:#}"));
    let (low, high) = (size("largest_eager_bytes"), size("smallest_waiting_bytes"));
    assert!(low <= limit && limit < high + HEADERS, "{found:#}");
    // from 1 : 4, where it began; how close it came in its time is the machine's affair
    assert!(high <= 16 * low, "{found:#}");
    assert_eq!(found["declared"]["agrees"], true, "{found:#}");
}

#[test]
fn open_mpi_on_shared_memory() {
    check(
        "openmpi",
        &["--mca", "btl", "vader,self"],
        "OMPI_MCA_btl_vader_eager_limit",
        &[2_900, 70_000],
    );
}

#[test]
fn open_mpi_on_tcp() {
    check("openmpi", &["--mca", "btl", "tcp,self"], "OMPI_MCA_btl_tcp_eager_limit", &[11_111]);
}

#[test]
fn mpich() {
    check("mpich", &[], "UCX_RNDV_THRESH", &[3_333]);
}
