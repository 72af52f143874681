//! Names that command terminals and spreadsheets: whatever a run holds, what is printed is text.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::lapscope;
use lapscope_data::text::visible::is_hostile;
use lapscope_fixture::library::library;
use lapscope_fixture::share::is_all;
use lapscope_fixture::small::run as small_run;
use lapscope_fixture::{child, full};
use rusqlite::Connection;

/// Sets a terminal's title, moves the cursor, colours by C0 and by C1, rings, turns the direction of text, and forges a line.
const HOSTILE: &str = "=1+A1\x1b]0;t\x07\x1b[2J\x1b[31m\u{9b}31m\r\x08\x7f\u{85}\u{202e}\u{2066}\u{2028}\u{fdd1}\nlapscope: forged, \"x\"";

/// What people and spreadsheets read.
const PRINTED: [&str; 3] = ["text", "csv", "markdown"];

/// Text columns of all tables, and whether each may hold anything at all.
fn text_columns(path: &Path) -> Vec<(String, String)> {
    let database = Connection::open(path).unwrap();
    let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
               WHERE m.type = 'table' AND c.type = 'TEXT' ORDER BY 1, 2";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A run with rows in every table, of which `columns` are hostile.
fn run_with(columns: &[(String, String)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    full::write(directory.path());
    for rank in 0..2 {
        let database = Connection::open(directory.path().join(format!("rank-{rank}.db"))).unwrap();
        database.pragma_update(None, "ignore_check_constraints", true).unwrap();
        for (table, column) in columns {
            // A key stays one; names of calls stay names of calls, and so on, with something behind them.
            let sql = format!("UPDATE {table} SET {column} = ?1 || coalesce({column}, '') || ?1");
            let changed = database.execute(&sql, [HOSTILE]).unwrap();
            assert!(changed > 0, "the fixture has no row of {table}");
        }
    }
    directory
}

fn assert_harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let bad = text.chars().find(|&letter| is_hostile(letter) && letter != '\n' && letter != '\t');
    assert_eq!(bad, None, "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("lapscope: forged")), "{what}: {text}");
}

/// Returns how many bytes it printed; an error is fine, as long as it is harmless itself.
fn check(directory: &Path, arguments: &[&str], format: &str) -> usize {
    let output = lapscope(directory, &[arguments, &["--format", format]].concat());
    let what = format!("{arguments:?} {format}");
    assert_harmless(&what, &output.stdout);
    assert_harmless(&what, &output.stderr);
    // what cannot be read is not judged
    let failed = if arguments[0] == "check" { 2 } else { 1 };
    assert!([Some(0), Some(failed)].contains(&output.status.code()), "{what}: {output:?}");
    if output.status.success() && format == "json" {
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON");
    }
    if format == "csv" {
        check_cells(&what, std::str::from_utf8(&output.stdout).unwrap());
    }
    output.stdout.len()
}

/// No cell begins a formula.
fn check_cells(what: &str, text: &str) {
    for line in text.lines() {
        let starts = line.split(',').map(|cell| cell.trim_start_matches('"'));
        let formula = starts.into_iter().find(|cell| cell.starts_with(['=', '@']));
        assert_eq!(formula, None, "{what}: {line}");
    }
}

fn query(table: &str) -> String {
    format!("SELECT * FROM {table}")
}

#[test]
fn every_text_column_and_every_reading_command() {
    const PARTS: usize = 6;
    let columns = text_columns(&small_run().path().join("rank-0.db"));
    assert!(columns.len() >= 34, "{columns:?}");
    let mut runs: Vec<&[(String, String)]> = columns.iter().map(std::slice::from_ref).collect();
    // What only names something can be hostile all at once, too, and the commands go on to the end.
    let is_free = |(table, column): &&(String, String)| {
        let fixed = [
            "kind",
            "ended",
            "reason",
            "mpi_abi",
            "role",
            "family",
            "mode",
            "clock",
            "lapscope_version",
            "job",
        ];
        !fixed.contains(&column.as_str())
            && table != "call_name"
            && (table != "option" || column != "name")
    };
    let free: Vec<(String, String)> = columns.iter().filter(is_free).cloned().collect();
    runs.push(&free);
    let (next, printed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&hostile) = runs.get(number) else { break };
                    let run = run_with(hostile);
                    let query = query(&hostile[0].0);
                    for (turn, command) in full::READING.iter().enumerate() {
                        // One table of `overlap` has what the others have. In `make check` a single column goes to a part of
                        // the commands, to another one for the next column.
                        let is_left_out = (number + turn) % PARTS != 0 && !is_all();
                        let is_same = command.len() > 2 && command[2] != "site";
                        if hostile.len() == 1 && (is_left_out || is_same) {
                            continue;
                        }
                        // Of a single column each command prints one format, another for the next column.
                        let formats = if hostile.len() == 1 {
                            std::slice::from_ref(&PRINTED[(number + turn) / PARTS % PRINTED.len()])
                        } else {
                            &["text", "csv", "json", "markdown"]
                        };
                        for format in formats {
                            let bytes = check(run.path(), &full::line(command, &query), format);
                            printed.fetch_add(bytes, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let least = if is_all() { 150_000 } else { 75_000 };
    assert!(printed.into_inner() > least, "hardly anything was printed");
}

#[test]
fn what_is_hostile_is_shown_and_json_has_it_as_it_is() {
    let run = run_with(&[
        ("rank".to_owned(), "command".to_owned()),
        ("rank".to_owned(), "host".to_owned()),
    ]);
    let text = crate::fixture::answer(run.path(), &["report", "."]);
    assert!(
        text.contains(
            "=1+A1\\x1b]0;t\\x07\\x1b[2J\\x1b[31m\\u{9b}31m\\r\\x08\\x7f\\u{85}\\u{202e}"
        ),
        "{text}"
    );
    let report = crate::fixture::json(run.path(), &["report", "."]);
    assert!(report["head"]["command"].as_str().unwrap().starts_with(HOSTILE));
    let csv = crate::fixture::answer(run.path(), &["hang", "--pending", ".", "--format", "csv"]);
    assert!(csv.contains("\"'=1+A1\\x1b]0;t"), "{csv}");
}

/// Names of files are somebody else's, too.
#[test]
fn names_of_files_and_arguments() {
    let parent = tempfile::tempdir().unwrap();
    let name = format!("lapscope-{}", HOSTILE.replace('/', ""));
    let run = parent.path().join(&name);
    std::fs::create_dir(&run).unwrap();
    full::write(&run);
    std::fs::write(run.join("rank-2.db"), "no database").unwrap();
    std::fs::write(run.join("rank-3.spool"), "no spool").unwrap();
    for command in full::READING {
        let line: Vec<&str> = full::line(command, "SELECT 1")
            .iter()
            .map(|word| if *word == "." { name.as_str() } else { word })
            .collect();
        check(parent.path(), &line, "text");
    }
    for line in [
        vec!["merge", &name],
        vec!["merge", &name, "-o", "a\x1b[2J.db"],
        vec!["recover", &name],
        vec!["doctor", "a\x1b[2J"],
        vec!["report", "a\x1b[2J"],
        vec!["report", "--no\x1b[2J"],
        vec!["sites", &name, "--call", "x\x1b[2J"],
        vec!["overlap", &name, "--reference", "a\x1b[2J"],
        vec!["bench", "--read", "a\x1b[2J"],
        vec!["run", "--dry-run", "--", "/bin/sh", "-c", "printf '\x1b[2J'"],
        vec!["run", "--", "no-such\x1b[2J"],
        vec!["tune", "--policy", "/dev/null/\x1b[2J", "--", "no-such\x1b[2J"],
        vec!["calibrate", "--", "no-such\x1b[2J"],
    ] {
        let output = lapscope(parent.path(), &line);
        assert_harmless(&format!("{line:?}"), &output.stdout);
        assert_harmless(&format!("{line:?}"), &output.stderr);
        assert!(output.stdout.len() + output.stderr.len() > 0, "{line:?} says nothing");
    }
}

/// What is to be pasted into a shell says the same there.
#[test]
fn a_dry_run_quotes_control_characters() {
    let directory = tempfile::tempdir().unwrap();
    let word = "it's\x1b[2J\n\u{9b}\\é";
    let output = crate::fixture::bare(&["run", "--dry-run", "--", "/bin/echo", word])
        .env("LAPSCOPE_LIBRARY", library())
        .current_dir(&directory)
        .output()
        .unwrap();
    assert_harmless("dry run", &output.stdout);
    let line = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .last()
        .unwrap()
        .replace("/bin/echo", "printf %s");
    let echoed = child::command("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8(echoed.stdout).unwrap(), word, "{line}");
}
