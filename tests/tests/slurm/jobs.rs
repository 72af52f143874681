//! A site that records every job: the TaskProlog that docs/sites.md has, jobs of two users, and `lapscope jobs`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;

use lapscope_fixture::share::is_all;
use lapscope_tests::answer::{rows as list, text};
use lapscope_tests::launch::{lapscope, Form};
use lapscope_tests::slurm::{Bed, Cluster};
use lapscope_tests::{child, mpi, paths};

/// A user who is on every machine.
const OTHER: &str = "65534";

fn write(path: &Path, mode: u32, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

/// As the other user, by a program that needs no password of root.
fn as_other(line: &[OsString]) -> Vec<OsString> {
    let own = ["setpriv", "--reuid", OTHER, "--regid", OTHER, "--clear-groups"];
    own.into_iter().map(OsString::from).chain(line.iter().cloned()).collect()
}

/// What the programs print stays as it is; each record is its user's, whose name `lapscope jobs` has from the file; and nobody else
/// can read it, or list who has run what.
#[test]
fn every_job_of_two_users_is_recorded() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(bed) = mpi::named("openmpi").and_then(|mpi| Bed::new(&cluster, mpi)) else { return };
    // SAFETY: it only answers.
    if unsafe { libc::geteuid() } != 0 {
        lapscope_tests::say!("SKIPPED: jobs of two users, without root");
        return;
    }
    let place = bed.place.path();
    fs::set_permissions(place, Permissions::from_mode(0o755)).expect("its mode");
    let (records, prolog) = (place.join("records"), place.join("prolog"));
    fs::create_dir(&records).expect("a folder");
    fs::set_permissions(&records, Permissions::from_mode(0o1733)).expect("its mode");
    let exports = [
        format!("LD_PRELOAD={}", paths::preload_library().display()),
        "LAPSCOPE_RECORD=job".to_owned(),
        "LAPSCOPE_QUIET=on".to_owned(),
        format!("LAPSCOPE_DIR={}", records.display()),
    ];
    let lines = exports.map(|export| format!("echo export {export}\n")).concat();
    write(&prolog, 0o755, &format!("#!/bin/sh\n{lines}"));
    let prolog = format!("--task-prolog={}", prolog.display());
    // of each user: twenty jobs in `make check-all`
    let jobs = if is_all() { 10 } else { 2 };
    for count in (1..=jobs).map(|job| (10 * job).to_string()) {
        let bare = bed.job(Form::Bare, &bed.srun(&["-N2", "-n4"], "stencil", &[&count])).run();
        assert_eq!(bare.code, 0, "{}", bare.stderr);
        let line = bed.srun(&["-N2", "-n4", &prolog], "stencil", &[&count]);
        for line in [line.clone(), as_other(&line)] {
            let with = bed.job(Form::Bare, &line).run();
            assert_eq!((with.code, &with.stdout), (bare.code, &bare.stdout), "{}", with.stderr);
        }
    }
    for entry in fs::read_dir(&records).expect("records").flatten() {
        let facts = entry.metadata().expect("a file");
        assert_eq!(facts.mode() & 0o777, 0o600, "{entry:?}");
    }
    let listed = as_other(&["ls".into(), records.clone().into()]);
    let listed = child::command(&listed[0]).args(&listed[1..]).output().expect("setpriv");
    assert!(!listed.status.success(), "{listed:?}");

    let database = place.join("jobs.db");
    let answer = lapscope([
        "jobs".as_ref(),
        records.as_os_str(),
        "--database".as_ref(),
        database.as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let mut of_user = BTreeMap::new();
    for job in list(&answer, "jobs") {
        *of_user.entry(job["user"].as_i64()).or_insert(0) += 1;
        assert_eq!((&job["ranks"], &job["is_over"]), (&4.into(), &1.into()), "{job:#}");
        if cluster.has_nodes("records of two nodes") {
            assert_eq!((&job["nodes"], &job["given_nodes"]), (&2.into(), &2.into()), "{job:#}");
        }
        assert!(text(job, "executable").ends_with("/stencil"), "{job:#}");
        assert!(job["exposed_seconds"].as_f64() > Some(0.0) && job["batch_job"].is_string());
    }
    assert_eq!(of_user, BTreeMap::from([(Some(0), jobs), (Some(65534), jobs)]), "{answer:#}");
}
