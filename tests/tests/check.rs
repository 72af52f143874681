//! The script of `examples/ci`, as a system for CI starts it.

use std::fs;
use std::path::Path;
use std::process::Output;

use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{child, paths, trials, turn};

/// The script on `tests/apps/comes_late.c`, whose rank 1 comes late by so long.
fn check(mpi: &Mpi, place: &Path, milliseconds: u32) -> Output {
    let _turn = turn::of_launches();
    // ends with 3, which is no failure of its own
    let program = "#!/bin/sh\n\"$@\" || [ $? = 3 ]\n";
    fs::write(place.join("launch.sh"), program).unwrap();
    let source = paths::apps().join("comes_late.c");
    let build = format!("{} -g -O1 -o app '{}' -pthread", mpi.compiler, source.display());
    let words = [mpi.launcher.to_owned(), "-n".into(), "2".into(), "./app".into()];
    let launch = format!("sh ./launch.sh {} {milliseconds}", words.join(" "));
    let lapscope = paths::lapscope();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = child::command(paths::root().join("examples/ci/check.sh"));
    command.current_dir(place).envs(mpi.environment.iter().copied());
    command.env("PATH", format!("{}:{path}", lapscope.parent().unwrap().display()));
    command.env("LAPSCOPE_LIBRARY", paths::preload_library());
    command.env("BUILD", build).env("LAUNCH", launch).env("BASELINE", "base.json");
    command.output().unwrap()
}

#[test]
fn a_slower_program_falls_short_and_its_site_is_named() {
    let mpi = mpi::debian()[0];
    trials::up_to_three("examples/ci/check.sh", || {
        let place = tempfile::tempdir().unwrap();
        let answer = |milliseconds| {
            let output = check(mpi, place.path(), milliseconds);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let why = format!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
            (output.status.code(), said, why)
        };
        let (code, said, why) = answer(20);
        assert!(code == Some(0) && said.contains("base.json is the baseline now"), "{why}");
        let (code, said, why) = answer(400);
        assert!(said.starts_with("| verdict | what |"), "{why}");
        assert!(code == Some(1) && said.contains("falls_short | run-time"), "{why}");
        let badge = fs::read_to_string(place.path().join("lapscope-ci/check.svg")).unwrap();
        assert!(badge.contains("falls short"), "{badge}");
        assert!(said.contains("; most grew MPI_Irecv receive_both comes_late.c:"), "{why}");
        // the other way it holds
        fs::remove_file(place.path().join("base.json")).unwrap();
        let (code, _, why) = answer(400);
        assert_eq!(code, Some(0), "{why}");
        let (code, _, why) = answer(20);
        assert_eq!(code, Some(0), "{why}");
    });
}
