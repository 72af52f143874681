//! Two nodes on one machine: a rank with a host name of its own and a clock that is seven seconds ahead, in name spaces
//! that real programs do not notice.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use lapscope_tests::answer::{ask_without_processors, number, rows, site, text};
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials::up_to_three;
use lapscope_tests::{build, child};

/// Lets rank 1 run on another node.
const APART: &str = r#"#!/bin/sh
case "$OMPI_COMM_WORLD_RANK$PMI_RANK" in
1) exec unshare -u -T --monotonic 7 --fork sh -c 'hostname elsewhere && exec "$@"' sh "$@" ;;
*) exec "$@" ;;
esac
"#;

fn is_permitted() -> bool {
    let made = child::command("unshare")
        .args(["-u", "-T", "--monotonic", "7", "--fork", "hostname", "elsewhere"])
        .stderr(Stdio::null())
        .status();
    let is_permitted = made.is_ok_and(|status| status.success());
    if !is_permitted {
        lapscope_tests::say!(
            "NOT TESTED: clocks of two nodes (UTS and time name spaces are not permitted here)"
        );
    }
    is_permitted
}

#[test]
fn clocks_of_two_nodes_are_brought_together() {
    if !is_permitted() {
        return;
    }
    for mpi in share!(mpi::debian()) {
        up_to_three(&format!("clocks of two nodes under {}", mpi.name), || brings_together(mpi));
    }
}

fn brings_together(mpi: &Mpi) {
    let place = place();
    let script = place.path().join("apart");
    std::fs::write(&script, APART).expect("a script");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).expect("an executable script");
    let job = Job::new(mpi, 2, script, Form::Preload, place.path());
    let job = job.args([build::app(mpi, "late_receiver")]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}: {}", mpi.name, outcome.stderr);

    let overlap = ask_without_processors("overlap", &job.run_directory());
    let clocks = &overlap["clocks"];
    println!("{}: {clocks}", mpi.name);
    assert_eq!(number(clocks, "clocks"), 2.0);
    // by the time of day to begin with, which both share: what is left is how exact that is
    let correction = &rows(clocks, "corrections")[0];
    assert!(number(correction, "offset_ns").abs() < 1e9, "{clocks}");
    assert_eq!(text(correction, "host"), "elsewhere");
    assert_eq!(number(&overlap["matching"], "doubtful"), 0.0, "{}", overlap["matching"]);
    assert_eq!(number(&overlap["matching"], "unmatched_sends"), 0.0, "{}", overlap["matching"]);
    let paths: Vec<&str> =
        rows(&overlap, "localities").iter().map(|row| text(row, "locality")).collect();
    assert_eq!(paths, ["network"]);
    assert_eq!(text(site(&overlap, "MPI_Isend", "wait_for_receiver"), "cause"), "late_partner");
}
