//! `lapscope export perfetto|chrome|otf2`. What is in a file for Perfetto or OTF2 is read with their own readers by the tests of the
//! Python package; here are what is said, what is refused, and names that mean harm.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::fixture::{answer, command, failure, on_a_full_disk, remarks, text};
use lapscope_fixture::calls::Calls;
use lapscope_fixture::child;
use lapscope_fixture::edit_rank;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Call, Mark, Operation, Rank};
use serde_json::Value;

/// Events of a file for Chrome.
fn events(path: &Path) -> Vec<Value> {
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    file["traceEvents"].as_array().unwrap().clone()
}

fn chrome(run: &Path, options: &[&str]) -> Vec<Value> {
    answer(run, &[&["export", "chrome", ".", "-o", "run.json"], options].concat());
    events(&run.join("run.json"))
}

fn count(events: &[Value], phase: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == phase) {
        *counts.entry(event["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

/// Rank 0 sends with a request, then blocking, rank 1 receives likewise; the second receive waits for its send.
fn pair(directory: &Path) {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, 1000, 10);
    ranks[0].wait(3, 100, 150, &[send]);
    let receive = ranks[1].receive(2, 1000, 70);
    ranks[1].wait(3, 90, 155, &[receive]);
    ranks[1].block(Operation::receive("MPI_Recv", 4, (500, 0, 8)), 200, 300);
    ranks[0].block(Operation::send("MPI_Send", 5, (500, 1, 8)), 290, 299);
    for calls in &ranks {
        let rank = Rank { end_ns: 1_000_000, ..Rank::plain(calls.rank) };
        rank.write(directory, |file| calls.write(file));
    }
}

#[test]
fn calls_requests_and_messages_are_there() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    let all = chrome(run.path(), &[]);
    let names = ["MPI_Irecv", "MPI_Isend", "MPI_Recv", "MPI_Send"].map(|name| (name, 1));
    let calls = [&names[..], &[("MPI_Waitall", 2)]].concat();
    assert_eq!(count(&all, "X"), counts(&calls));
    assert_eq!(count(&all, "b"), counts(&names[..2]));
    assert_eq!(count(&all, "b"), count(&all, "e"));
    assert_eq!(
        (count(&all, "s"), count(&all, "f")),
        (counts(&[("message", 2)]), counts(&[("message", 2)]))
    );
    // from where a send begins to where its receive ends, within the calls: microseconds, of which the last digit is a nanosecond
    let moments = |phase: &str| -> Vec<f64> {
        let flows = all.iter().filter(|event| event["ph"] == phase);
        flows.map(|event| event["ts"].as_f64().unwrap()).collect()
    };
    assert_eq!((moments("s"), moments("f")), (vec![10.0, 290.0], vec![154.999, 299.999]));
    let recv = all.iter().find(|event| event["name"] == "MPI_Recv").unwrap();
    assert_eq!((&recv["ts"], &recv["dur"]), (&Value::from(200.0), &Value::from(100.0)));
    let arguments = ["bytes", "peer", "tag"].map(|name| recv["args"][name].as_i64().unwrap());
    assert_eq!(arguments, [500, 0, 8]);
}

#[test]
fn a_stretch_and_some_ranks_can_be_chosen() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    let first = chrome(run.path(), &["--ranks", "0"]);
    assert_eq!(count(&first, "X").values().sum::<usize>(), 3);
    assert_eq!(count(&first, "s"), BTreeMap::new(), "the other end is not shown");
    // what touches the stretch is there whole
    let later = chrome(run.path(), &["--from", "250us", "--to", "295us"]);
    assert_eq!(count(&later, "X"), counts(&[("MPI_Recv", 1), ("MPI_Send", 1)]));
    assert_eq!(count(&later, "f"), counts(&[("message", 1)]));
    let said = failure(run.path(), &["export", "perfetto", ".", "--ranks", "5"]);
    assert!(said.contains("--ranks: . has none of these"), "{said}");
}

/// The small run has a tally, a pending request, and sends whose other end left no row.
#[test]
fn what_is_missing_is_said() {
    let run = small_run();
    let stuck = Rank { world: 3, ended: "killed", end_ns: 90_000, ..Rank::new(0) };
    stuck.write(run.path(), |file| small::stuck(file, small::ISEND));
    edit_rank(run.path(), 1, |file| {
        let operation_id = file.insert(Operation::collective("MPI_Barrier", 5));
        file.insert(Call { operation_id, begin_ns: 40_000, duration_ns: None, ..Call::default() });
    });
    for what in ["perfetto", "chrome"] {
        let said = remarks(run.path(), &["export", what, ".", "-o", "file"]);
        for part in [
            "no arrow for 4 sends",
            "1 call had not returned",
            "1 request was not completed",
            "file: ",
        ] {
            assert!(said.contains(part), "{what}: {part}: {said}");
        }
    }
    let all = chrome(run.path(), &[]);
    let is = |event: &&Value, key: &str, value: bool| event["args"][key] == value;
    assert_eq!(all.iter().filter(|event| is(event, "returned", false)).count(), 1);
    assert!(all.iter().any(|event| is(&event, "pending", true)));
}

#[test]
fn marks_are_regions_and_steps() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    edit_rank(run.path(), 0, |file| {
        for (begin_ns, level, name) in [
            (5_000, 1, Some("solve\"\n")),
            (6_000, 2, None),
            (160_000, -1, Some("solve\"\n")),
            (170_000, 2, None),
        ] {
            file.insert(Mark { begin_ns, level, name, ..Mark::default() });
        }
    });
    let all = chrome(run.path(), &[]);
    let regions = all.iter().filter(|event| event["cat"] == "region");
    let found: Vec<(&str, f64, &str)> = regions
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap();
            (text("name"), event["ts"].as_f64().unwrap(), text("ph"))
        })
        .collect();
    let expected = [
        ("solve\"\n", 5.0, "b"),
        ("step 1", 6.0, "b"),
        ("solve\"\n", 160.0, "e"),
        ("step 1", 170.0, "e"),
        ("step 2", 170.0, "b"),
        ("step 2", 1000.0, "e"),
    ];
    assert_eq!(found, expected);
}

/// Requests of one MPI_Startall share its time; MPI_Sendrecv is two halves.
#[test]
fn one_call_is_one_however_much_it_does() {
    let run = tempfile::tempdir().unwrap();
    let mut calls = Calls::new(0);
    let start =
        |kind, peer| Operation { kind, ..Operation::send("MPI_Startall", 1, (10, peer, 3)) };
    // shares of 1 us each, and another call 3 us later
    let requests = [("send", 10), ("recv", 11), ("send", 15)]
        .map(|(kind, begin)| calls.begin(start(kind, 0), begin));
    calls.wait(3, 100, 150, &requests);
    calls.block(Operation::send("MPI_Sendrecv", 4, (500, 0, 8)), 200, 300);
    let rank = Rank { end_ns: 1_000_000, ..Rank::plain(0) };
    rank.write(run.path(), |file| {
        calls.write(file);
        let receive = Operation::receive("MPI_Sendrecv", 4, (600, 0, 9));
        let receive = file.insert(receive);
        file.change(&format!(
            "UPDATE call SET receive_operation_id = {receive} WHERE begin_ns = 200000"
        ));
    });
    let all = chrome(run.path(), &[]);
    let expected = [("MPI_Sendrecv", 1), ("MPI_Startall", 2), ("MPI_Waitall", 1)];
    assert_eq!(count(&all, "X"), counts(&expected));
    assert_eq!(count(&all, "b"), counts(&[("MPI_Startall", 3)]));
    let both = &all.iter().find(|event| event["name"] == "MPI_Sendrecv").unwrap()["args"];
    let numbers =
        ["bytes", "tag", "received_bytes", "received_tag"].map(|name| both[name].as_i64());
    assert_eq!(numbers, [500, 8, 600, 9].map(Some));
}

/// Names that would end a text, a tag or a line, and would be commands to a terminal.
const HOSTILE: &str = "\"}],</script><b>\u{1}\u{1b}[31m\\\n\t%s é";

#[test]
fn names_that_mean_harm_stay_names() {
    let run = tempfile::tempdir().unwrap();
    let mut calls = Calls::new(0);
    calls.block(Operation::other_call("MPI_Comm_dup", 1), 10, 20);
    let rank = Rank { end_ns: 1_000_000, host: HOSTILE, command: HOSTILE, ..Rank::plain(0) };
    rank.write(run.path(), |file| {
        calls.write(file);
        let path = HOSTILE.replace('\'', "");
        file.change(&format!("UPDATE module SET path = '/{path}'"));
        file.change(&format!("UPDATE call_name SET name = '{path}'"));
        file.insert(Mark { begin_ns: 5_000, level: 1, name: Some(HOSTILE), ..Mark::default() });
    });
    let all = chrome(run.path(), &[]);
    let nodes = all.iter().filter(|event| event["name"] == "process_name");
    let names: Vec<&str> = nodes.map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, [HOSTILE]);
    assert!(all.iter().any(|event| event["cat"] == "region" && event["name"] == HOSTILE));
    answer(run.path(), &["export", "perfetto", ".", "-o", "file"]);
    let bytes = fs::read(run.path().join("file")).unwrap();
    let times = bytes.windows(HOSTILE.len()).filter(|it| *it == HOSTILE.as_bytes()).count();
    assert!(times >= 2, "the host and the mark, as they are");
    let said = command(run.path(), &["export", "otf2", ".", "-o", "archive"]).output().unwrap();
    if !is_without_otf2(&text(&said.stderr)) {
        assert!(said.status.success(), "{}", text(&said.stderr));
        printed_by_otf2(run.path());
    }
}

fn is_without_otf2(said: &str) -> bool {
    said.contains("libopen-trace-format2-10")
}

/// `None` where there is no otf2-print.
fn printed_by_otf2(directory: &Path) -> Option<String> {
    let archive = directory.join("archive/traces.otf2");
    let output = child::command("otf2-print").args(["-G", "-A"]).arg(&archive).output().ok()?;
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "{said}");
    Some(printed)
}

#[test]
fn an_archive_is_made_once() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    let output = command(run.path(), &["export", "otf2", ".", "-o", "archive"]).output().unwrap();
    if is_without_otf2(&text(&output.stderr)) {
        return lapscope_data::say!("NOT TESTED: there is no libotf2 here");
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    if let Some(printed) = printed_by_otf2(run.path()) {
        for name in ["MPI_Isend", "MPI_Waitall", "rank 1"] {
            assert!(printed.contains(name), "{name}: {printed}");
        }
    }
    let said = failure(run.path(), &["export", "otf2", ".", "-o", "archive"]);
    assert!(said.contains("archive exists already; name another directory"), "{said}");
}

/// What is in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Files may not be longer than 512 bytes, which stands for a full disk.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    for what in ["perfetto", "chrome", "otf2"] {
        let place = tempfile::tempdir().unwrap();
        let mut export = command(place.path(), &["export", what, "-o", "made"]);
        export.arg(run.path());
        on_a_full_disk(&mut export, 64);
        let output = export.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        if !is_without_otf2(&said) {
            assert!(said.contains("made was not made: files of that size"), "{what}: {said}");
        }
        assert_eq!(names(place.path()), Vec::<String>::new(), "{what}");
    }
    let said = failure(run.path(), &["export", "perfetto", ".", "-o", "/dev/full"]);
    assert!(said.contains("make room"), "{said}");
}

/// The same file, whatever the parts; one that is there is replaced, and readable for whom others are.
#[test]
fn parts_give_the_same_file() {
    let run = tempfile::tempdir().unwrap();
    pair(run.path());
    let export = |options: &[&str]| {
        answer(run.path(), &[&["export", "perfetto", ".", "-o", "file"], options].concat());
        fs::read(run.path().join("file")).unwrap()
    };
    let whole = export(&[]);
    assert!(whole.len() > 500);
    assert_eq!(export(&["--parts", "2"]), whole);
    fs::write(run.path().join("plain"), "").unwrap();
    let mode = |name: &str| fs::metadata(run.path().join(name)).unwrap().permissions();
    assert_eq!(mode("file"), mode("plain"));
}
