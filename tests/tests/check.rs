//! The script of `examples/ci`, as a system for CI starts it.

use std::fs;
use std::path::Path;
use std::process::Output;

use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{child, paths, trials, turn};

/// The script on `tests/apps/comes_late.c`, whose rank 1 comes late by so long.
fn check(mpi: &Mpi, place: &Path, (work, milliseconds): (&str, u32)) -> Output {
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
    command.env("BUILD", build).env("LAUNCH", launch);
    command.env("BASELINE", "base.json").env("WORK", work);
    command.output().unwrap()
}

#[test]
fn a_slower_program_falls_short_and_its_site_is_named() {
    let mpi = mpi::debian()[0];
    trials::up_to_three("examples/ci/check.sh", || {
        let place = tempfile::tempdir().unwrap();
        let answer = |work: &str, milliseconds| {
            let output = check(mpi, place.path(), (work, milliseconds));
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let why = format!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
            (output.status.code(), said, why)
        };
        let (code, said, why) = answer("before", 20);
        assert!(code == Some(0) && said.contains("base.json is the baseline now"), "{why}");
        let (code, said, why) = answer("after", 400);
        assert!(said.starts_with("| verdict | what |"), "{why}");
        assert!(code == Some(1) && said.contains("falls_short | run-time"), "{why}");
        let badge = fs::read_to_string(place.path().join("after/check.svg")).unwrap();
        assert!(badge.contains("falls short"), "{badge}");
        assert!(said.contains("; most grew MPI_Irecv receive_both comes_late.c:"), "{why}");
        // the other way it holds
        let mut back = child::command(paths::lapscope());
        let run = |work: &str, number| format!("{work}/run-{number}");
        back.arg("check").args((1..=3).map(|number| run("before", number))).arg("--against");
        back.args((1..=3).map(|number| run("after", number)));
        let output = back.current_dir(place.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
    });
}
