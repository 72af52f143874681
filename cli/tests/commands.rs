//! Commands that need no run: their output, and what they do when the reader goes away.

use std::io::Read;
use std::process::Stdio;

use crate::fixture::{bare, command, lapscope, text};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::small::run as small_run;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, starts_with};

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&crate::fixture::printed(bare(arguments).env("LAPSCOPE_MAX_MB", "0")))
        .unwrap()
}

#[test]
fn options_say_what_is_set_and_whether_it_is_valid() {
    let answer = json(&["options", "--format", "json"]);
    let options = answer["options"].as_array().unwrap();
    let max_mb = options.iter().find(|option| option["name"] == "LAPSCOPE_MAX_MB").unwrap();
    assert_eq!((&max_mb["value"], &max_mb["valid"]), (&"0".into(), &false.into()));
    let clock = options.iter().find(|option| option["name"] == "LAPSCOPE_CLOCK").unwrap();
    assert_eq!((&clock["value"], &clock["valid"]), (&serde_json::Value::Null, &true.into()));
}

/// What the paper found: only a receiver that announces its buffer overlaps what it posts first.
#[test]
fn simulated_receives_overlap_where_the_receiver_announces_itself() {
    let simulated = ["bench", "--simulated", "--format", "json"];
    let answer = json(&[&simulated[..], &["--latency", "5us", "--bandwidth", "400MB/s"]].concat());
    assert_eq!(answer["link"]["source"]["kind"], "given");
    assert_eq!(answer["link"]["gap_ns_per_byte"], 2.5);
    let rows = answer["rows"].as_array().unwrap();
    let is_early =
        |row: &&serde_json::Value| row["side"] == "receive" && row["first"] == "receiver";
    let early: Vec<_> = rows.iter().filter(is_early).collect();
    assert_eq!((rows.len(), early.len()), (12, 3));
    for protocol in early.iter().flat_map(|row| row["protocols"].as_array().unwrap()) {
        let overlap = protocol["overlap"].as_f64().unwrap();
        let hides = protocol["protocol"] == "speculative";
        assert!(if hides { overlap > 0.95 } else { overlap < 0.1 }, "{protocol}");
    }
    bare(&["bench", "--simulated"])
        .assert()
        .success()
        .stdout(contains("4.00 µs one way, 950 MB/s"));
    bare(&["bench", "--latency", "5us"]).assert().code(2).stderr(contains("--simulated"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = bare(&["sql", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_missing_run_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for command in ["merge", "recover"] {
        let failed = bare(&[command]).current_dir(&directory).assert().code(1);
        failed.stderr(contains("lapscope run --"));
    }
}

/// Scripts that have the old name go on.
#[test]
fn old_names_of_commands_do_what_the_new_ones_do_and_say_these() {
    let run = small_run();
    for (old, new) in [("pending", "hang --pending"), ("merge", "export sqlite")] {
        let words: Vec<&str> = new.split(' ').collect();
        let [before, now] = [vec![old], words].map(|words| {
            let place = [".", "-o", "all.db"];
            let arguments = if old == "merge" { &place[..] } else { &place[..1] };
            let output = lapscope(run.path(), &[&words[..], arguments].concat());
            let _ = std::fs::remove_file(run.path().join("all.db"));
            output
        });
        assert!(now.status.success());
        assert_eq!(before.stdout, now.stdout);
        let renamed = format!("lapscope: lapscope {old} is now: lapscope {new}\n");
        assert!(
            text(&before.stderr).starts_with(&renamed) && !text(&now.stderr).contains(&renamed)
        );
    }
    command(run.path(), &["hang", ".", "--format", "csv"]).assert().code(2);
}

/// Tests start children by `child::command`, which takes nothing of the user's environment along. (Clippy sees to it in the
/// other crate of tests; here the command itself starts programs too.)
#[test]
fn children_of_tests_have_an_environment_of_their_own() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let sources = ["", "fixture"].into_iter().flat_map(|part| {
        let entries = std::fs::read_dir(directory.join(part)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let other_way = concat!("Command::", "new(");
    let mut count = 0;
    for path in sources.filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        count += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(other_way), "{}: {other_way}...)", path.display());
    }
    assert!(count > 20, "{count} sources");
}

#[test]
fn help_explains_words_and_commands() {
    let help = |topic: &[&str]| bare(&[&["help"], topic].concat()).assert();
    help(&["terms"]).success().stdout(contains("exposed time").and(contains("overlap window")));
    help(&["tune"]).success().stdout(contains("Usage: lapscope tune"));
    help(&[]).success().stdout(starts_with("How much"));
    help(&["word"]).code(2).stderr(contains("no help on 'word'; there is: terms, cures, run"));
}

#[test]
fn what_was_not_typed_is_asked_for_with_an_example() {
    for (typed, way) in [
        (&["run"][..], "lapscope run needs <COMMAND>..., as in: lapscope run -- mpirun -n 4 ./app"),
        (&["tune"], "as in: lapscope tune -- mpirun"),
        (&["calibrate"], "as in: lapscope calibrate -- mpirun -n 2"),
        (&["diff", "a"], "lapscope diff needs <B>, as in: lapscope diff "),
        (&["export", "loggps"], "needs --for <SIMULATOR>, as in: lapscope export loggps --for"),
        (&["export", "parquet"], "needs <DIR>, as in: lapscope export parquet tables"),
        (&["whatif", "--bandwidth"], "--bandwidth <RATE> needs a value: Rate of a transfer"),
    ] {
        bare(typed).assert().code(2).stderr(contains(way));
    }
}

#[test]
fn a_program_in_place_of_a_command_is_answered_with_how_to_record_it() {
    for (typed, way) in [
        (&["./app", "-n", "a b"][..], "lapscope run -- ./app -n 'a b'"),
        (&["sh", "-c", "true"], "lapscope run -- sh -c true"),
    ] {
        bare(typed).assert().code(2).stderr(contains(way).and(contains("no command of lapscope")));
    }
    bare(&["repot"]).assert().code(2).stderr(contains("'report'"));
}

#[test]
fn of_options_only_those_that_can_be_meant_are_guessed() {
    let said = |assignment| bare(&["run", "--set", assignment, "--", "true"]).assert().code(2);
    said("FOO=1").stderr(contains("no such option").and(contains("did you mean").not()));
    said("MAX_MD=1").stderr(contains("did you mean LAPSCOPE_MAX_MB?"));
}

#[test]
fn help_has_the_commands_by_what_they_are_for() {
    let help = crate::fixture::printed(&mut bare(&["--help"]));
    for heading in ["Record:", "Read:", "Ask:", "Change:", "Set up:", "Hand over:"] {
        assert!(help.contains(&format!("\n{heading}\n")), "{heading}: {help}");
    }
    assert!(!help.contains("\n  part "), "{help}");
}
