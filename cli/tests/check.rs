//! Runs against limits and earlier runs; runs are told apart by how long a rank computes and waits.

use std::path::Path;

use crate::fixture::{json, lapscope, text};
use lapscope_fixture::{documented, edit_rank, small};
use serde_json::{json, Value};

/// The answer as JSON, and the exit code.
fn check(run: &Path, arguments: &[&str]) -> (Value, i32) {
    let output = lapscope(run, &[&["check", "--format", "json"], arguments].concat());
    documented::check(&text(&output.stdout));
    let answer = serde_json::from_slice(&output.stdout);
    let answer = answer.unwrap_or_else(|_| json!(text(&output.stderr)));
    (answer, output.status.code().unwrap())
}

/// Of the small run 27601 of 150000 ns are exposed, and 2 ranks made 5 requests.
#[test]
fn limits_have_exit_codes() {
    let run = small::run();
    for (limit, code) in [
        (&["--max", "exposed=20%"][..], 0),
        (&["--max", "exposed=0.18"], 1),
        (&["--min", "efficiency=52%", "--max", "run-time=100us"], 0),
        (&["--min", "efficiency=53%", "--max", "run-time=100us"], 1),
        (&["--max", "run-time=100µs", "--max", "mpi=1"], 0),
        (&["--max", "totals.requests=5"], 0),
        (&["--max", "totals.requests=4"], 1),
        (&["--max", "step=1ms"], 2),
    ] {
        let (answer, found) = check(run.path(), &[&["."], limit].concat());
        assert_eq!(found, code, "{limit:?}: {answer}");
    }
    let (answer, _) = check(run.path(), &[".", "--max", "exposed=20%"]);
    let row = &answer["checks"][0];
    assert_eq!((&row["value"], &row["limit"]), (&json!(27_601.0 / 150_000.0), &json!(0.2)));
}

#[test]
fn what_cannot_be_judged_says_why() {
    let run = small::run();
    std::fs::create_dir(run.path().join("empty")).unwrap();
    for (arguments, why) in [
        (&["."][..], "nothing to check"),
        (&[".", "--max", "exposd=1"], "the nearest are exposed"),
        (&["nowhere", "--max", "exposed=1"], "nowhere"),
        (&[".", "--max", "exposed=5ms"], "expected a number"),
        (&[".", "--against", ".", "--advice", "99"], "pieces of advice"),
        (&[".", "--max", "head.command=1"], "head.command is no number of a report"),
        (&[".", "--max", "sites=1"], "sites is no number of a report"),
        (&[".", "--max", "exposed=nan"], "expected a number"),
        (&[".", "--max", "run_time=1s"], "; run_time is no time"),
        (&[".", "--max", "exposed=20"], "20: of a share write 20% or 2000%"),
        (&[".", "--max", "exposed"], "expected WHAT=VALUE"),
        (&[".", "--against", ".", "--tolerance=-5%"], "expected 0% to 100%"),
        (&[".", "--against", ".", "--tolerance=inf"], "expected"),
        (&[".", ".", "--against", "."], "is one run that is named twice"),
        (&[".", "--against", ".", "."], "is one run that is named twice"),
        (&["empty", "--max", "exposed=1"], "no rank-*.db"),
        (&[".", "--limits", "empty"], "Is a directory"),
        (&[".", "--limits", "nowhere.toml"], "No such file"),
        (&[".", "--against", "nowhere.json"], "nowhere.json"),
        (&[".", "--write-baseline", "rank-0.db"], "rank-0.db is there and no baseline"),
        (&[".", "--write-baseline", "empty"], "empty is there and no baseline"),
        (&[".", "--max", "exposed=1", "--junit", "nowhere/check.xml"], "nowhere/check.xml"),
    ] {
        let (answer, code) = check(run.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {answer}");
        assert!(answer.as_str().is_some_and(|said| said.contains(why)), "{arguments:?}: {answer}");
    }
}

#[test]
fn a_file_has_limits_too() {
    let run = small::run();
    let limits = "tolerance = \"5%\"\n[max]\nexposed = \"18%\"\ntotals.requests = 5\n[min]\nefficiency = 0.5\n";
    std::fs::write(run.path().join("limits.toml"), limits).unwrap();
    let (answer, code) = check(run.path(), &[".", "--limits", "limits.toml"]);
    assert_eq!(code, 1, "{answer}");
    let rows = answer["checks"].as_array().unwrap();
    let found: Vec<_> =
        rows.iter().map(|row| (row["what"].as_str().unwrap(), &row["verdict"])).collect();
    let holds = json!("holds");
    let expected =
        [("exposed", &json!("falls_short")), ("totals.requests", &holds), ("efficiency", &holds)];
    assert_eq!(found, expected);
    std::fs::write(run.path().join("limits.toml"), "[most]\nexposed = 1\n").unwrap();
    assert_eq!(check(run.path(), &[".", "--limits", "limits.toml"]).1, 2);
}

#[test]
fn limits_that_mean_harm_are_refused_by_name() {
    let run = small::run();
    let deep = format!("[max]\n{} = 1\n", vec!["a"; 3_000].join("."));
    for (limits, why) in [
        ("[max\nexposed = 1\n", "TOML"),
        ("[max]\nexposed = nan\n", "exposed: nan: expected a number"),
        ("[max]\nexposed = \"5ms\"\n", "exposed: 5ms: expected a number"),
        ("[max]\nexposed = [1]\n", "exposed: [1]: expected a number"),
        ("[max]\nexposed = true\n", "exposed: true: expected a number"),
        ("[max]\nexposd = 1\n", "the nearest are exposed"),
        ("[max]\n\"\" = 1\n", "a report has no number"),
        ("max = 1\n", "max: expected [max], [min] or tolerance"),
        ("tolerance = -1\n", "tolerance: expected 0% to 100%"),
        ("tolerance = \"5ms\"\n", "tolerance: 5ms: expected a number"),
        ("", "nothing to check"),
        (&deep, "limits.toml"),
    ] {
        std::fs::write(run.path().join("limits.toml"), limits).unwrap();
        let (answer, code) = check(run.path(), &[".", "--limits", "limits.toml"]);
        assert_eq!(code, 2, "{limits}: {answer}");
        assert!(answer.as_str().is_some_and(|said| said.contains(why)), "{limits}: {answer}");
    }
}

/// A baseline may be of another version, damaged, or somebody else's.
#[test]
fn baselines_that_cannot_be_are_not_judged() {
    let run = small::run();
    let place = run.path();
    let output = lapscope(place, &["check", ".", "--write-baseline", "good.json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let good: Value =
        serde_json::from_slice(&std::fs::read(place.join("good.json")).unwrap()).unwrap();
    let against = |baseline: &Value| {
        std::fs::write(place.join("base.json"), baseline.to_string()).unwrap();
        check(place, &[".", "--against", "base.json"])
    };
    assert_eq!(against(&good).1, 0, "itself");
    for (pointer, value, why) in [
        ("/version", json!(99), "another version"),
        ("/kind", json!("recipe"), "no baseline"),
        ("/runs", json!([]), "without runs"),
        ("/runs", json!(7), "without runs"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let (answer, code) = against(&bad);
        assert_eq!(code, 2, "{pointer}: {answer}");
        assert!(answer.as_str().is_some_and(|said| said.contains(why)), "{pointer}: {answer}");
    }
    // what an earlier version did not keep, or what cannot be, is not known
    for (pointer, value) in [
        ("/runs/0", json!("no run")),
        ("/runs/0/head", Value::Null),
        ("/runs/0/head/longest_run_ns", json!("long")),
        ("/runs/0/summary", json!({})),
        ("/runs/0/head/longest_run_ns", json!(1e308)),
        ("/runs/0/head/ranks", json!(64)),
        ("/runs/0/head/started_unix_ns", json!(-1)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let (answer, code) = against(&bad);
        assert_eq!(code, 2, "{pointer}: {answer}");
    }
    let three = |name: &str, times: [f64; 3]| {
        let mut baseline = good.clone();
        let run = |ns: f64| {
            let mut run = good["runs"][0].clone();
            run["head"]["longest_run_ns"] = json!(ns);
            run
        };
        baseline["runs"] = json!(times.map(run));
        std::fs::write(place.join(name), baseline.to_string()).unwrap();
    };
    three("far.json", [1e308, 1e307, -1e308]);
    three("near.json", [1.0, 2.0, 3.0]);
    for sides in [["far.json", "near.json"], ["near.json", "far.json"]] {
        let (answer, code) = check(place, &[sides[0], "--against", sides[1]]);
        assert_eq!(code, 2, "{answer}");
    }
}

#[test]
fn runs_of_other_ranks_or_programs_are_said() {
    let (run, other) = (small::run(), small::run());
    edit_rank(other.path(), 1, |file| file.change("UPDATE rank SET end_ns = end_ns + 1"));
    edit_rank(other.path(), 0, |file| {
        file.change("UPDATE rank SET executable = '/nowhere/other'");
    });
    let against = other.path().display().to_string();
    let (answer, code) = check(run.path(), &[".", "--against", &against]);
    assert_eq!(code, 2, "{answer}");
    assert!(answer["notes"].to_string().contains("different programs: app, other"), "{answer}");
    std::fs::remove_file(other.path().join("rank-1.db")).unwrap();
    let (answer, code) = check(run.path(), &[".", "--against", &against]);
    let sentence = answer["checks"][1]["sentence"].as_str().unwrap();
    assert!(sentence.contains("the runs have 2 ranks, and the earlier ones 1"), "{answer}");
    assert_eq!((code, &answer["sites"]), (2, &json!([])), "{answer}");
    // the least of what three runs a side ask, if they had one number of ranks
    let runs: Vec<_> = [1, 2, 3, 4, 5, 6].map(longer).into();
    for run in [&runs[0], &runs[3]] {
        std::fs::remove_file(run.path().join("rank-1.db")).unwrap();
    }
    let paths: Vec<String> = runs.iter().map(|it| it.path().display().to_string()).collect();
    let (new, old) = paths.split_at(3);
    let sides = new.iter().map(String::as_str).chain(["--against"]);
    let sides: Vec<&str> = sides.chain(old.iter().map(String::as_str)).collect();
    let (answer, code) = check(run.path(), &sides);
    let sentence = answer["checks"][0]["sentence"].as_str().unwrap();
    assert!(sentence.ends_with("; the runs of each side have 1, 2 ranks"), "{answer}");
    assert_eq!(code, 2, "{answer}");
    let (answer, code) = check(other.path(), &[".", "--max", "exposed=100%"]);
    let sentence = answer["checks"][0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("ranks are missing in ."), "{answer}");
    assert_eq!(code, 2, "{answer}");
}

/// A program that dies early is no quick one, and no baseline of others.
#[test]
fn runs_that_died_are_not_judged() {
    let (run, whole) = (small::run(), longer(1));
    edit_rank(run.path(), 1, |file| file.change("UPDATE rank SET ended = 'killed'"));
    let (answer, code) = check(run.path(), &[".", "--max", "run-time=1s", "--max", "calls=1000"]);
    assert_eq!(code, 2, "{answer}");
    for row in answer["checks"].as_array().unwrap() {
        assert!(row["sentence"].as_str().unwrap().ends_with("; ranks died in ."), "{answer}");
    }
    assert_eq!(check(run.path(), &[".", "--against", "."]).1, 0, "itself");
    let output = lapscope(run.path(), &["check", ".", "--write-baseline", "died.json"]);
    let said = text(&output.stderr);
    assert!(said.contains("nothing can be judged against died.json: ranks died in ."), "{said}");
    let died = run.path().join("died.json").display().to_string();
    assert_eq!(check(whole.path(), &[".", "--against", &died]).1, 2);
    let output = lapscope(whole.path(), &["check", ".", "--write-baseline", "whole.json"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

/// Rank 0 computes so much longer before its last call and its end.
fn longer(by: i64) -> tempfile::TempDir {
    let run = small::run();
    edit_rank(run.path(), 0, |file| {
        file.change(&format!("UPDATE rank SET end_ns = end_ns + {by}"))
    });
    run
}

#[test]
fn slower_runs_fall_short_of_a_baseline() {
    let runs: Vec<_> = [0, 1_000, 2_000].map(longer).into();
    let slower: Vec<_> = [40_000, 41_000, 42_000].map(longer).into();
    let paths = |runs: &[tempfile::TempDir]| -> Vec<String> {
        runs.iter().map(|run| run.path().display().to_string()).collect()
    };
    let (old, new) = (paths(&runs), paths(&slower));
    let place = tempfile::tempdir().unwrap();
    let words = |runs: &[String], more: &[&str]| -> Vec<String> {
        runs.iter().cloned().chain(more.iter().map(|&word| word.to_owned())).collect()
    };
    let ask = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        check(place.path(), &words)
    };
    let output = lapscope(
        place.path(),
        &words(&old, &["--write-baseline", "base.json"]).iter().map(String::as_str).fold(
            vec!["check"],
            |mut all, word| {
                all.push(word);
                all
            },
        ),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = std::fs::metadata(place.path().join("base.json")).unwrap().len();
    assert!(kept < 40_000, "{kept} bytes of three runs");
    let against =
        ["--against", "base.json", "--junit", "check.xml", "--badge", "check.svg", "--advice", "0"];
    let (answer, code) = ask(&words(&new, &against));
    assert_eq!(code, 1, "{answer}");
    let row = &answer["checks"][0];
    assert_eq!((&row["what"], &row["verdict"]), (&json!("run-time"), &json!("falls_short")));
    // means of 141 and 101 us
    let change = row["change"]["estimate"].as_f64().unwrap();
    assert!((change - 40.0 / 101.0).abs() < 1e-9, "{answer}");
    let measured = answer["advice"]["verified"]["estimate"].as_f64().unwrap();
    assert!((measured + change).abs() < 1e-9, "it is slower by that");
    let xml = std::fs::read_to_string(place.path().join("check.xml")).unwrap();
    let xml = roxmltree::Document::parse(&xml).unwrap();
    let failed = xml.descendants().filter(|node| node.has_tag_name("failure")).count();
    assert_eq!(xml.root_element().attribute("failures"), Some(failed.to_string().as_str()));
    assert!(failed > 0);
    let badge = std::fs::read_to_string(place.path().join("check.svg")).unwrap();
    assert!(roxmltree::Document::parse(&badge).is_ok() && badge.contains("falls short"));
    // the other way round, and of themselves, it holds; of one run each nothing is known
    assert_eq!(ask(&words(&old, &["--against", &new[0], &new[1], &new[2]])).1, 0);
    assert_eq!(ask(&words(&old, &["--against", "base.json"])).1, 0);
    assert_eq!(ask(&words(&old[..1], &["--against", &old[0]])).1, 0);
    assert_eq!(ask(&words(&new[..1], &["--against", &old[0]])).1, 2);
}

/// What a short name stands for is a key of the report.
#[test]
fn short_names_are_of_the_report() {
    let run = small::run();
    let report = json(run.path(), &["report", "."]);
    for (short, pointer, _) in lapscope_report::check::SHORT_NAMES {
        let top = pointer.split('/').nth(1).unwrap();
        assert!(report.get(top).is_some(), "{short}: {pointer}");
        let parent = pointer.rsplit_once('/').unwrap().0;
        let is_open = report.pointer(parent).is_some_and(Value::is_null)
            || !parent[1..].contains('/')
            || report.pointer(&format!("/{top}")).is_some_and(Value::is_null);
        assert!(report.pointer(pointer).is_some() || is_open, "{short}: {pointer}");
    }
}
