//! What is said of files that cannot be read: which file, why, and the way out.

use std::fs;
use std::path::Path;

use crate::fixture::{command, failure, json};
use assert_cmd::assert::OutputAssertExt;
use lapscope_data::db::USER_VERSION;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::Rank;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

fn set_version(path: &Path, version: i64) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_update(None, "user_version", version).unwrap();
}

#[test]
fn other_formats() {
    let directory = tempfile::tempdir().unwrap();
    let path = Rank::new(0).write(directory.path(), |_| ());
    let own = USER_VERSION;
    set_version(&path, own + 1);
    let newer = failure(directory.path(), &["report", "rank-0.db"]);
    let expected = format!("rank-0.db: format {}, newer than format {own}", own + 1);
    assert!(newer.contains(&expected), "{newer}");
    set_version(&path, own - 1);
    let older = failure(directory.path(), &["sites", "rank-0.db"]);
    let expected = format!("rank-0.db: format {}, older than format {own}", own - 1);
    assert!(older.contains(&expected), "{older}");
}

#[test]
fn files_that_are_not_ours() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes.txt"), "not a database at all").unwrap();
    let error = failure(directory.path(), &["report", "notes.txt"]);
    assert_eq!(error, "lapscope: notes.txt: not a lapscope database\n");
    rusqlite::Connection::open(directory.path().join("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    let error = failure(directory.path(), &["requests", "other.db"]);
    assert_eq!(error, "lapscope: other.db: not a lapscope database\n");
    fs::write(directory.path().join("empty.db"), "").unwrap();
    let error = failure(directory.path(), &["hang", "--pending", "empty.db"]);
    assert_eq!(error, "lapscope: empty.db: not a lapscope database\n");
}

#[test]
fn nothing_there() {
    let directory = tempfile::tempdir().unwrap();
    let error = failure(directory.path(), &["report"]);
    assert!(error.contains("no run directory (lapscope-*) with data here"), "{error}");
    let error = failure(directory.path(), &["report", "nowhere"]);
    assert_eq!(error, "lapscope: nowhere: no such file or directory\n");
    fs::create_dir(directory.path().join("lapscope-1")).unwrap();
    let error = failure(directory.path(), &["report", "lapscope-1"]);
    assert!(error.contains("lapscope-1: no rank-*.db, node-*.db or rank-*.spool in it"), "{error}");
}

/// The tables of a small file lie in pages of their own, so that spoiling all but the first leaves a readable schema.
fn spoil(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[4096..].fill(0xa5);
    fs::write(path, bytes).unwrap();
}

/// The launcher was forgotten, or what is its was given to lapscope.
#[test]
fn an_option_of_a_launcher_is_answered_with_a_launch_line() {
    let directory = tempfile::tempdir().unwrap();
    for (typed, line) in [
        (&["run", "-n", "2", "./halo"][..], "lapscope run -- mpirun -n 2 ./halo"),
        (&["tune", "-np", "4", "./my app"], "lapscope tune -- mpirun -np 4 './my app'"),
    ] {
        let failed = command(directory.path(), typed).assert().code(2);
        failed.stderr(contains(line));
    }
    let failed = command(directory.path(), &["run", "--nothing", "./halo"]).assert().code(2);
    failed.stderr(contains("mpirun").not());
}

#[test]
fn one_damaged_file_does_not_hide_the_others() {
    let run = small_run();
    spoil(&run.path().join("rank-0.db"));
    for command in ["report", "sites", "requests", "pending"] {
        let answer = json(run.path(), &[command, "."]);
        assert_eq!(answer["json_version"], 3, "{command}");
    }
    let report = json(run.path(), &["report", "."]);
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems[0]["kind"], "damaged_file");
    let message = problems[0]["message"].as_str().unwrap();
    assert!(message.contains("rank-0.db: damaged"), "{message}");
    assert_eq!(problems[1]["kind"], "missing_ranks");
    assert_eq!(report["totals"]["collective_ns"], 8_000);
    spoil(&run.path().join("rank-1.db"));
    let error = failure(run.path(), &["report", "."]);
    assert!(error.contains("rank-0.db: damaged"), "{error}");
}

#[test]
fn the_newest_run_is_taken() {
    let here = tempfile::tempdir().unwrap();
    for (name, command, age) in [("lapscope-b", "old", 100), ("lapscope-a", "new", 10)] {
        let directory = here.path().join(name);
        fs::create_dir(&directory).unwrap();
        let path = Rank { command, ..Rank::new(1) }.write(&directory, small::rank_1);
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    // Neither an empty directory nor a file of that name is a run.
    fs::create_dir(here.path().join("lapscope-z")).unwrap();
    fs::write(here.path().join("lapscope-zz"), "").unwrap();
    let report = json(here.path(), &["report"]);
    assert_eq!((&report["head"]["command"], &report["run"]), (&"new".into(), &"lapscope-a".into()));
}

/// Ranks that kept their spools on a node's own disk, and were killed: the run directory only says where they are.
#[test]
fn a_run_of_which_only_pointers_are_there_says_where_its_spools_are() {
    let run = tempfile::tempdir().unwrap();
    let pointer = "node9.elsewhere\t/local/lapscope/rank-2.spool\n";
    fs::write(run.path().join("rank-2.spool-at"), pointer).unwrap();
    let said = failure(run.path(), &["report", "."]);
    assert!(said.contains("node9.elsewhere") && said.contains("lapscope recover"), "{said}");
}
