//! Lines are as wide as the output allows, whatever a command has to say.

use std::path::Path;

use assert_cmd::assert::OutputAssertExt;
use lapscope_data::text::style::display_width;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Frame, Rank};
use lapscope_fixture::{edit_rank, full, share, Fixture};
use predicates::prelude::predicate::in_iter;

const WIDTHS: [usize; 6] = [40, 60, 80, 100, 120, 200];

fn printed(directory: &Path, arguments: &[&str], columns: usize) -> String {
    let columns = columns.to_string();
    let mut command = crate::fixture::command(directory, arguments);
    let outcome = command.env("COLUMNS", columns).assert();
    // Whatever doctor finds missing on the machine of the test, it has printed all it has to say.
    let outcome =
        if arguments[0] == "doctor" { outcome.code(in_iter([0, 3])) } else { outcome.success() };
    String::from_utf8(outcome.get_output().stdout.clone()).unwrap()
}

/// A line may be wider only where it is one word that cannot be broken (a path, a symbol) behind indentation, a mark, or the
/// branch of a tree; or a command line to be copied.
fn may_be_wider(line: &str) -> bool {
    let marks = ["!", "->", "A", "B", "├", "└", "│", "ok", "warn", "missing"];
    let words: Vec<&str> =
        line.split_whitespace().skip_while(|word| marks.contains(word)).collect();
    words.len() <= 1 || line.starts_with("  lapscope ")
}

fn check(directory: &Path, arguments: &[&str]) {
    for columns in share!(0, WIDTHS.to_vec()) {
        let text = printed(directory, arguments, columns);
        for line in text.lines() {
            let width = display_width(line);
            assert!(
                width <= columns || may_be_wider(line),
                "{arguments:?}: {width} of {columns} columns: {line}\n{text}"
            );
        }
    }
}

#[test]
fn every_reading_command_fits() {
    let run = tempfile::tempdir().unwrap();
    full::write(run.path());
    for command in full::READING {
        check(run.path(), &full::line(command, "SELECT * FROM requests"));
    }
    for arguments in
        [&["sql"][..], &["doctor"], &["doctor", env!("CARGO_BIN_EXE_lapscope")], &["options"]]
    {
        check(run.path(), arguments);
    }
}

#[test]
fn long_names_go_on_below() {
    let run = tempfile::tempdir().unwrap();
    full::write(run.path());
    let host = "node-of-a-cluster-whose-name-has-no-end.department.university.example";
    let path =
        "/a/path/to/somewhere/that/is/much/longer/than/any/screen/is/wide/app_with_a_long_name_too";
    for rank in 0..2 {
        edit_rank(run.path(), rank, |file| {
            file.change(&format!("UPDATE rank SET host = '{host}', command = '{path} {path}'"));
            file.change(&format!("UPDATE module SET path = '{path}' WHERE id = 1"));
            file.change(&format!("UPDATE environment SET value = '{path} {path}'"));
        });
    }
    for command in full::READING {
        check(run.path(), &full::line(command, "SELECT * FROM rank"));
    }
    let narrow = printed(run.path(), &["sites", "."], 40);
    let whole = "app_with_a_long_name_too+0x100";
    assert!(narrow.contains(whole), "{narrow}");
}

/// Nothing is left out: what a wide table says, a narrow one says, too.
#[test]
fn nothing_is_lost_on_a_narrow_terminal() {
    let run = small_run();
    let words = |columns: usize, arguments: &[&str]| {
        let text = printed(run.path(), arguments, columns);
        let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
        let mut words: Vec<String> = text
            .split_whitespace()
            .filter(is_word)
            .map(|word| word.trim_matches([',', '.', ';', ':', '(', ')']).to_owned())
            .collect();
        words.sort();
        words.dedup();
        words
    };
    for arguments in [
        &["report", "."][..],
        &["sites", "."],
        &["requests", "."],
        &["overlap", "."],
        &["sql", ".", "SELECT * FROM requests"],
    ] {
        let narrow = words(40, arguments);
        for word in words(160, arguments) {
            assert!(narrow.contains(&word), "{arguments:?}: {word} is not among {narrow:?}");
        }
    }
}

fn deepen(file: &Fixture) {
    file.change("DELETE FROM frame");
    for call_path_id in 1..=6 {
        for depth in 0..40 {
            let branch = if depth < 30 { call_path_id } else { 0 };
            // Every second path leaves the others one frame earlier, so that branches nest.
            let nested = if (2..=call_path_id).contains(&(29 - depth)) { 29 - depth } else { 0 };
            let address = 0x10000 * (depth + 1) + branch + nested;
            file.insert(Frame { call_path_id, depth, address, ..Frame::default() });
        }
    }
}

/// Deep call paths leave room for what is at their end.
#[test]
fn deep_trees() {
    let run = tempfile::tempdir().unwrap();
    Rank::new(0).write(run.path(), |file| {
        small::rank_0(file);
        deepen(file);
    });
    Rank::new(1).write(run.path(), small::rank_1);
    check(run.path(), &["sites", "."]);
    check(run.path(), &["sites", ".", "--paths"]);
}

/// Where no terminal and no COLUMNS says how wide lines may be: 100 columns, and a line a row for queries.
#[test]
fn pipes() {
    let run = small_run();
    let output = |arguments: &[&str]| {
        let mut command = crate::fixture::command(run.path(), arguments);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let widest = |text: &str| text.lines().map(display_width).max().unwrap_or(0);
    let report = output(&["report", "."]);
    assert!((81..=100).contains(&widest(&report)), "{report}");
    let rows = output(&["sql", ".", "SELECT * FROM requests"]);
    assert_eq!(rows.lines().count(), 1 + 3, "{rows}");
    assert!(widest(&rows) > 200, "{rows}");
}
