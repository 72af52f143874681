//! `lapscope tune` under real launchers: where transfers stand still it finds a setting that moves them, and what it prints does
//! so in a run of its own; where there is nothing to gain it says so.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lapscope_tests::answer::{ask, number, rows, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{paths, share, trials};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

/// A search ends within this, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// `overlap_pair` under `lapscope tune`, on a bed.
fn tune(mpi: &Mpi, bed: Bed, place: &Path, options: &[&str], program: &[&str]) -> Outcome {
    let mut line = vec![build::app(mpi, "overlap_pair").into_os_string()];
    line.extend(program.iter().map(OsString::from));
    let mut tool = Job::alone(paths::lapscope(), Form::Bare, place)
        .args(["tune", "--format", "json"])
        .args(options)
        .args(["--"])
        .args(mpi.launch_line(2, &line))
        .limit(PATIENCE);
    for (name, value) in mpi.environment {
        tool = tool.env(name, *value);
    }
    bed.around(mpi, tool).run()
}

fn answer(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("JSON alone on standard output")
}

/// How long a message of its iterations was waited for in a run, nanoseconds, a mean.
fn waited(run: &Path) -> f64 {
    let overlap = ask("overlap", run);
    let is_one = |row: &&Value| text(&row["site"], "function") == "post";
    let sum = |key| {
        rows(&overlap, "sites").iter().filter(is_one).map(|row| number(row, key)).sum::<f64>()
    };
    sum("exposed_ns") / sum("requests")
}

/// Messages that stand still while both sides compute for twice as long as they take.
const STALLED: [&str; 2] = ["stalled", "1048576"];

#[test]
fn where_transfers_stand_still_it_finds_what_moves_them() {
    let Some(mpi) = mpi::named("openmpi").filter(|mpi| Bed::SlowLink.is_there(mpi)) else { return };
    trials::up_to_three("a search for a gain", || finds_a_gain(mpi));
}

fn finds_a_gain(mpi: &Mpi) {
    let (place, answer) = gain(mpi);
    let best = &answer["best"];
    println!(
        "{} gains {:.1} % ({:.1} to {:.1} %)",
        best["mode"],
        100.0 * number(&best["gain"], "estimate"),
        100.0 * number(&best["gain"], "low"),
        100.0 * number(&best["gain"], "high")
    );
    assert!(number(&best["gain"], "low") > 0.0, "{answer:#}");
    assert_eq!(rows(&answer["confirmation"], "pairs").len(), 3, "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(
        notes.contains("call MPI_Test in a loop around ") && notes.contains(" work.h:"),
        "{notes}"
    );
    for pair in ["pair-1-bare", "pair-1-injected"] {
        let is_recorded = place.path().join("kept").join(pair).is_dir();
        assert_eq!(is_recorded, pair.ends_with("injected"), "{pair}");
    }

    let before = waited(&place.path().join("kept/1-plain"));
    let variables = variables(best);
    let after = waited(&applied(mpi, &place.path().join("on"), &variables));
    println!(
        "a message was waited for {:.1} ms without injection, {:.1} ms with what tune printed",
        before / 1e6,
        after / 1e6
    );
    assert!(after < 0.6 * before, "waited {before} ns before, {after} ns after");

    switched_off(mpi, place.path(), &variables);
}

/// A search that has found a gain, and where its runs are. Where others have the processors now and then it may not be sure of
/// one.
fn gain(mpi: &Mpi) -> (TempDir, Value) {
    let modes = if share::is_all() { "timer,thread" } else { "timer" };
    let injection = ["--no-settings", "--modes", modes, "--intervals", "1000", "--runs", "3"];
    let options = [&injection[..], &["--dir", "kept"]].concat();
    let place = place();
    let program = [&STALLED[..], &["100"]].concat();
    let answer = answer(&tune(mpi, Bed::SlowLink, place.path(), &options, &program));
    assert_eq!(answer["found"], "gain", "{answer:#}");
    (place, answer)
}

/// What tune says is to be set.
fn variables(best: &Value) -> Vec<(String, String)> {
    let of = |variable: &Value, key| text(variable, key).to_owned();
    let list = rows(best, "environment").iter();
    list.map(|variable| (of(variable, "name"), of(variable, "value"))).collect()
}

/// A run with these variables.
fn applied(mpi: &Mpi, place: &Path, variables: &[(String, String)]) -> PathBuf {
    std::fs::create_dir(place).expect("a directory");
    let mut job = Bed::SlowLink.job(mpi, 2, build::app(mpi, "overlap_pair"), place);
    job = job.args(STALLED).args(["60"]).limit(PATIENCE);
    for (name, value) in variables {
        job = job.env(name, value);
    }
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(!outcome.said.iter().any(|line| line.contains("POLICY")), "{outcome:?}");
    job.run_directory()
}

/// The recorder finds the call sites that the policy names: with all of them off nothing is injected.
fn switched_off(mpi: &Mpi, place: &Path, variables: &[(String, String)]) {
    let policy = std::fs::read_to_string(place.join("lapscope-policy")).expect("a policy");
    let off: Vec<String> =
        policy.lines().map(|line| line.replacen("on MPI_", "off MPI_", 1)).collect();
    assert!(off.iter().filter(|line| line.starts_with("off ")).count() >= 2, "{policy}");
    let file = place.join("all-off");
    std::fs::write(&file, off.join("\n") + "\n").expect("a file to write");
    let mut variables = variables.to_vec();
    let policy = variables.iter_mut().find(|(name, _)| name == "LAPSCOPE_INJECT_POLICY");
    policy.expect("a policy").1 = file.to_string_lossy().into_owned();
    let run = applied(mpi, &place.join("off"), &variables);
    for rank in 0..2 {
        let database = Connection::open(run.join(format!("rank-{rank}.db"))).expect("a database");
        let sql = "SELECT count(*), sum(policy), sum(tests) FROM injection";
        let counted = database.query_row(sql, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let (sites, on, tests) = counted.expect("rows of injection");
        assert!(
            sites > 0 && on == 0 && tests == 0,
            "rank {rank}: {sites} sites, {on} on, {tests} tests"
        );
    }
}

/// The library itself says what it knows; what a person would set is among what is tried, and what nobody may set is not.
#[test]
fn settings_of_the_mpi_are_tried_where_messages_stand_still() {
    let tried = |mpi, bed: Bed| {
        let options = ["--no-injection", "--setting", "NOBODY_READS_THIS=1"];
        let (options, steps) =
            if share::is_all() { (&options[..1], "30") } else { (&options[..], "5") };
        let place = place();
        let answer = answer(&tune(mpi, bed, place.path(), options, &["stalled", "1048576", steps]));
        let settings = answer["settings"].clone();
        println!("{}: {}", mpi.name, settings["best"]["exports"]);
        settings
    };
    for mpi in share!(mpi::all().to_vec()) {
        let bed = if Bed::SlowLink.is_there(mpi) { Bed::SlowLink } else { Bed::SharedMemory };
        let ask = || {
            let settings = tried(mpi, bed);
            let rows = rows(&settings, "tried");
            assert!(!rows.is_empty(), "{}: {settings:#}", mpi.name);
            assert!(rows.iter().all(|row| row["failed"].is_null()), "{}: {settings:#}", mpi.name);
            if !share::is_all() {
                return;
            }
            let names = settings["tried"].to_string();
            let thread = match mpi.name {
                "openmpi" | "openmpi5" => "OMPI_MCA_btl_tcp_progress_thread",
                "intel" => "I_MPI_ASYNC_PROGRESS",
                _ => "MPIR_CVAR_ASYNC_PROGRESS",
            };
            assert!(names.contains(thread), "{}: {settings:#}", mpi.name);
            if mpi.name == "openmpi" {
                assert_eq!(settings["found"], "gain", "{settings:#}");
                let proof = &settings["best"]["proof"];
                assert!(number(&proof["gain"], "low") > 0.0, "{settings:#}");
            }
        };
        trials::up_to_three("a search among settings", ask);
    }
}

#[test]
fn where_there_is_nothing_to_gain_it_says_so() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let of = |options: &[&str], program: &[&str]| {
            answer(&tune(mpi, Bed::SharedMemory, place.path(), options, program))
        };
        let small = of(&[], &["hidden", "1000", "20"]);
        assert_eq!(small["found"], "nothing_to_gain", "{}: {small:#}", mpi.name);
        assert_eq!(small["hopeless"], "only_small", "{}: {small:#}", mpi.name);
        let settings = &small["settings"];
        let none = ["nothing_to_try", "no_gain", "unproved"];
        assert!(none.contains(&text(settings, "found")), "{}: {small:#}", mpi.name);
        let family = if mpi.name == "openmpi" { "Open MPI 4" } else { "MPICH 4" };
        assert!(text(settings, "mpi").starts_with(family), "{}: {small:#}", mpi.name);
        // What a busy machine puts beside these messages may look like a window: then it tries, in vain.
        let exposed = of(&["--no-settings"], &["exposed", "1000000", "20"]);
        let found = text(&exposed, "found");
        let none = ["nothing_to_gain", "no_gain", "unconfirmed"];
        assert!(none.contains(&found), "{}: {exposed:#}", mpi.name);
        let left: Vec<_> =
            std::fs::read_dir(place.path()).expect("a directory").flatten().collect();
        assert!(left.is_empty(), "{}: {left:?}", mpi.name);
    }
}

#[test]
fn a_program_that_fails_ends_the_search() {
    let Some(mpi) = mpi::all().first() else { return };
    let place = place();
    let outcome =
        tune(mpi, Bed::SharedMemory, place.path(), &["--dir", "kept"], &["no_such_situation"]);
    assert_ne!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("no situation no_such_situation"), "{outcome:?}");
    assert!(outcome.said.iter().any(|line| line.contains("run 1-plain failed")), "{outcome:?}");
    assert!(place.path().join("kept/1-plain").is_dir());
}
