//! `lapscope check` of real runs: the script of `examples/ci`, as a system for CI starts it, and the halo exchange.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{json, Value};

use lapscope_tests::bed::Bed;
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

/// An empty comment is refused by who posts it.
#[test]
fn where_there_is_no_answer_there_are_words() {
    let place = tempfile::tempdir().unwrap();
    let mut command = child::command(paths::root().join("examples/ci/check.sh"));
    command.current_dir(place.path()).env("BUILD", "exit 7").env("LAUNCH", "true");
    let output = command.env("BASELINE", "base.json").output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Nothing was checked: exit code 7.\n");
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
        assert!(said.contains("; most grew MPI_Waitall receive_both comes_late.c:"), "{why}");
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

/// `examples/halo/halo.c`, as it is or with a test behind every row of the interior; in file and function `halo.c`, `iterate`.
fn halo(mpi: &Mpi, place: &Path, with_tests: bool) -> PathBuf {
    let mut source = fs::read_to_string(paths::root().join("examples/halo/halo.c")).unwrap();
    if with_tests {
        let row = "        update_row(b, y, steps);\n";
        let test = "        { int done; if (under_way) MPI_Testall(4, under_way, &done, MPI_STATUSES_IGNORE); }\n";
        let interior = "    compute_interior(b, steps);\n    double computed";
        let changes = [
            (
                "static void compute_interior",
                "static MPI_Request *under_way;\nstatic void compute_interior",
            ),
            (row, &format!("    {{\n{row}{test}    }}\n")),
            (interior, &format!("    under_way = requests;\n{interior}")),
        ];
        for (old, new) in changes {
            assert!(source.contains(old), "{old}");
            source = source.replacen(old, new, 1);
        }
    }
    let directory = place.join(if with_tests { "with-tests" } else { "as-it-is" });
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("halo.c"), source).unwrap();
    let mut compiler = child::command(mpi.compiler);
    compiler.args(["-std=gnu11", "-O2", "-g", "-w", "-o", "halo", "halo.c", "-lm"]);
    let output = compiler.current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.join("halo")
}

/// Three runs of a program over the slow link: 84 ms an exchange, beside about so much work.
fn three_runs(mpi: &Mpi, program: &Path) -> Vec<PathBuf> {
    let directory = program.parent().unwrap();
    let run = |number: u32| {
        let place = directory.join(number.to_string());
        fs::create_dir(&place).unwrap();
        let job = Bed::SlowLink.job(mpi, 2, program, &place);
        let job = job.args(["-i", "8", "-s", "20"]);
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        job.run_directory()
    };
    (1..=3).map(run).collect()
}

/// What the check says as JSON, and its exit code.
fn held(runs: &[PathBuf], against: &[PathBuf], more: &[&str]) -> (Value, Option<i32>) {
    let mut command = child::command(paths::lapscope());
    command.arg("check").args(runs).arg("--against").args(against).args(more);
    let output = command.args(["--format", "json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (serde_json::from_slice(&output.stdout).expect(&said), output.status.code())
}

/// The halo exchange as it is against the one with tests in its computation: it is slower, for its MPI_Waitall; the other way round
/// the advice to test has saved what the interval says; and nothing falls short of itself.
#[test]
fn the_halo_without_tests_falls_short_of_the_one_with_them() {
    let mpi = mpi::debian()[0];
    if is_left_out!() || !Bed::SlowLink.is_there(mpi) {
        return;
    }
    trials::up_to_three("lapscope check of the halo exchange", || {
        let place = tempfile::tempdir().unwrap();
        let [plain, tested] =
            [false, true].map(|with_tests| three_runs(mpi, &halo(mpi, place.path(), with_tests)));
        assert_eq!(held(&plain, &plain, &[]).1, Some(0), "of themselves");
        assert_eq!(held(&tested[..1], &tested[..1], &[]).1, Some(0), "of itself");
        let (answer, code) = held(&plain, &tested, &[]);
        assert_eq!(code, Some(1), "{answer:#}");
        let run_time = &answer["checks"][0];
        assert_eq!(
            (&run_time["what"], &run_time["verdict"]),
            (&json!("run-time"), &json!("falls_short"))
        );
        let site = &answer["sites"][0];
        assert_eq!((&site["call"], &site["function"]), (&json!("MPI_Waitall"), &json!("iterate")));
        assert!(site["difference_ns"].as_i64().unwrap() > 0, "{site:#}");
        let named = run_time["sentence"].as_str().unwrap();
        assert!(named.contains("most grew MPI_Waitall iterate halo.c:"), "{named}");
        let (answer, code) = held(&tested, &plain, &["--advice", "0"]);
        assert_eq!(code, Some(0), "{answer:#}");
        let advice = &answer["advice"];
        assert_eq!(advice["cure"], "test", "{advice:#}");
        let saved = advice["verified"]["low"].as_f64().unwrap();
        assert!(saved > 0.0, "{advice:#}");
    });
}
