//! `lapscope whatif` on runs whose other run times were worked out on paper.

use std::fs;
use std::path::Path;

use crate::fixture::{answer, command, failure, json, lapscope, text};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::tables::Rank;
use serde_json::Value;

const SEND: &str = "MPI_Send";
const RECV: &str = "MPI_Recv";

/// What is wrong on the command line: exit code 2, and what is said of it.
fn usage(directory: &Path, arguments: &[&str]) -> String {
    let failed = command(directory, &[&["whatif"], arguments].concat()).assert().code(2).stdout("");
    text(&failed.get_output().stderr)
}

#[test]
fn knobs_that_cannot_be_are_named_with_what_can() {
    let here = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["--latency", "2"][..], "expected a time, as 2us, or a multiple, as x0.5"),
        (&["--bandwidth", "fast"], "expected a bandwidth, as 12GB/s"),
        (&["--protocol", "rdma"], "[possible values: eager, rendezvous-write"),
        (&["--progress", "every=1ns"], "every=1ms (100ns at least)"),
        (&["--cpu", "0"], "expected a speed above 0"),
        (&["--sweep", "speed=1,2"], "one of the knobs bandwidth, latency"),
        (&["--sweep", "latency=0us..1us"], "list such values"),
        (&["--sweep", "cpu=1,2", "--sweep", "cpu=3"], "cpu is swept twice"),
        (&["--on", "node"], "turn one"),
        (&["--figure", "runs.png"], "ends with .svg or .html"),
    ] {
        let said = usage(here.path(), arguments);
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn scenario_files_that_cannot_be_are_named_with_line_and_key() {
    let here = tempfile::tempdir().unwrap();
    let said = |content: &str| {
        fs::write(here.path().join("a.toml"), content).unwrap();
        failure(here.path(), &["whatif", "--scenario", "a.toml", "."])
    };
    let fast = said("[[scenario]]\nlatency = \"fast\"\n");
    assert!(fast.starts_with("lapscope: a.toml:2: latency: `fast`: expected a time"), "{fast}");
    let unknown = said("[[scenario]]\n\nlatncy = \"2us\"\n");
    assert!(unknown.starts_with("lapscope: a.toml:3: unknown field `latncy`"), "{unknown}");
    assert!(said("").contains("no scenario in it"));
    let missing = failure(here.path(), &["whatif", "--scenario", "b.toml", "."]);
    assert!(missing.contains("b.toml: No such file"), "{missing}");
}

// --- runs --------------------------------------------------------------------------------------------------------------

const COMPUTE: i64 = 100_000;
const SIZES: [i64; 3] = [100_000, 10_000, 1];
/// A send is buffered.
const SENDING: i64 = 1_000;
const ROUNDS: i64 = 10;

/// Nanoseconds from send to receive: 10 us, and 1 us a KB.
fn transfer(bytes: i64) -> i64 {
    10_000 + bytes
}

fn write(directory: &Path, ranks: [&Rows; 2], end_ns: i64) {
    for (rank, rows) in (0..).zip(ranks) {
        let rank = Rank { end_ns, world_size: 2, ..Rank::plain(rank) };
        rank.write(directory, |file| rows.write(file));
    }
}

/// Sends of the largest size whose receiver computes for 300 us meanwhile: what shows that they need none.
const SHOWN: i64 = 5;
const ELSEWHERE: i64 = 300_000;

/// Those, then ping-pong of three sizes with 100 us of computation before each send, whose receiver is there before.
pub fn ping_pong() -> (tempfile::TempDir, i64) {
    let directory = tempfile::tempdir().unwrap();
    let mut ranks = [Rows::default(), Rows::default()];
    for shown in 0..SHOWN {
        let (begin, bytes) = (shown * (ELSEWHERE + SENDING), SIZES[0]);
        ranks[0].blocking((SEND, "send", bytes, 1, 7), begin, SENDING);
        ranks[1].blocking((RECV, "recv", bytes, 0, 7), begin + ELSEWHERE, SENDING);
    }
    // since when each rank is free
    let mut free = [SHOWN * (ELSEWHERE + SENDING); 2];
    for _ in 0..ROUNDS {
        for bytes in SIZES {
            for (sender, receiver) in [(0, 1), (1, 0)] {
                let sent = free[sender] + COMPUTE;
                let received = sent + transfer(bytes);
                let (send, receive) = (
                    (SEND, "send", bytes, receiver as i64, 7),
                    (RECV, "recv", bytes, sender as i64, 7),
                );
                ranks[sender].blocking(send, sent, SENDING);
                ranks[receiver].blocking(receive, free[receiver], received - free[receiver]);
                free[sender] = sent + SENDING;
                free[receiver] = received;
            }
        }
    }
    write(directory.path(), [&ranks[0], &ranks[1]], free[0]);
    (directory, free[0])
}

/// Run time of the ping-pong where messages take `latency` and so much of a nanosecond for each byte.
fn expected(compute: i64, latency: i64, ns_per_byte: f64) -> f64 {
    let bytes: i64 = SIZES.iter().sum();
    let once = 3 * (compute + latency);
    let shown = SHOWN * (ELSEWHERE / COMPUTE * compute + SENDING);
    shown as f64 + (2 * ROUNDS) as f64 * (once as f64 + bytes as f64 * ns_per_byte)
}

fn run_ns(answer: &Value) -> f64 {
    answer["run_ns"].as_f64().unwrap_or_else(|| panic!("no run time in {answer:#}"))
}

fn is_near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.01
}

#[test]
fn run_times_are_those_of_arithmetic() {
    let (run, recorded) = ping_pong();
    assert_eq!(recorded as f64, expected(COMPUTE, 10_000, 1.0));
    for (knobs, expected) in [
        (&["--bandwidth", "x2"][..], expected(COMPUTE, 10_000, 0.5)),
        (&["--bandwidth", "inf"], expected(COMPUTE, 10_000, 0.0)),
        (&["--bandwidth", "500MB/s"], expected(COMPUTE, 10_000, 2.0)),
        (&["--latency", "0s"], expected(COMPUTE, 0, 1.0)),
        (&["--latency", "x2"], expected(COMPUTE, 20_000, 1.0)),
        (&["--cpu", "2"], expected(COMPUTE / 2, 10_000, 1.0)),
        (&["--cpu", "0.5", "--latency", "110us"], expected(2 * COMPUTE, 110_000, 1.0)),
    ] {
        let answer = json(run.path(), &[&["whatif", "."], knobs].concat());
        assert_eq!(answer["recorded"]["run_ns"], recorded);
        assert!(is_near(run_ns(&answer["identity"]), recorded as f64), "{:#}", answer["identity"]);
        let [scenario] = answer["scenarios"].as_array().unwrap().as_slice() else {
            panic!("{answer:#}")
        };
        assert!(is_near(run_ns(scenario), expected), "{knobs:?}: {expected}, {scenario:#}");
    }
}

#[test]
fn sweeps_and_scenarios_are_answered_in_their_order() {
    let (run, recorded) = ping_pong();
    let file = "[[scenario]]\nname = \"good\"\nlatency = \"0s\"\n[[scenario]]\ncpu = 2\n";
    fs::write(run.path().join("a.toml"), file).unwrap();
    let sweep = ["--sweep", "bandwidth=500MB/s,inf,cpu=0.5..2/3"];
    let asked = [&["whatif", ".", "--cpu", "4", "--scenario", "a.toml"][..], &sweep].concat();
    let answer = json(run.path(), &asked);
    let names: Vec<&Value> =
        answer["scenarios"].as_array().unwrap().iter().map(|scenario| &scenario["name"]).collect();
    assert_eq!(names, ["--cpu 4", "good", "--cpu 2"]);
    // the sweep of bandwidths keeps the processor of the first scenario
    let points = |sweep: usize| answer["sweeps"][sweep]["points"].as_array().unwrap().clone();
    let found: Vec<f64> = points(0).iter().map(run_ns).collect();
    let by_hand = [2.0, 0.0].map(|gap| expected(COMPUTE / 4, 10_000, gap));
    assert!(
        is_near(found[0], by_hand[0]) && is_near(found[1], by_hand[1]),
        "{found:?} {by_hand:?}"
    );
    assert_eq!(points(0)[1]["number"], Value::Null);
    assert!(is_near(run_ns(&points(1)[1]), recorded as f64));
    let rows = crate::fixture::answer(run.path(), &[&asked[..], &["--format", "csv"]].concat());
    assert_eq!(rows.lines().count(), 1 + 2 + 3 + 5, "{rows}");
}

#[test]
fn figures_are_drawn_and_pages_have_them() {
    let (run, _) = ping_pong();
    for (name, begin) in [("a.svg", "<svg "), ("a.html", "<!DOCTYPE html>")] {
        let sweep = ["whatif", ".", "--sweep", "latency=1us..1ms/4", "--figure", name];
        assert!(answer(run.path(), &sweep).contains("SWEEP latency"));
        let figure = fs::read_to_string(run.path().join(name)).unwrap();
        assert!(figure.starts_with(begin) && figure.contains("latency"), "{name}: {figure}");
    }
}

/// Both ranks send before they receive, which works as long as messages are buffered.
fn head_to_head() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut ranks = [Rows::default(), Rows::default()];
    for round in 0..20 {
        let begin = round * 200_000;
        for (rank, rows) in ranks.iter_mut().enumerate() {
            let peer = 1 - rank as i64;
            rows.blocking((SEND, "send", 1_000, peer, 7), begin + COMPUTE, 1_000);
            rows.blocking((RECV, "recv", 1_000, peer, 7), begin + COMPUTE + 1_000, 10_000);
        }
    }
    write(directory.path(), [&ranks[0], &ranks[1]], 4_000_000);
    directory
}

#[test]
fn programs_that_rely_on_buffering_deadlock_without() {
    let run = head_to_head();
    let unsafe_run = lapscope(run.path(), &["whatif", ".", "--eager-limit", "0"]);
    assert_eq!(unsafe_run.status.code(), Some(3), "{}", text(&unsafe_run.stderr));
    let said = text(&unsafe_run.stdout);
    let first = "! with an eager limit of 0 ranks 0 and 1 deadlock in MPI_Send";
    assert!(said.starts_with(first), "{said}");
    assert!(said.contains("WHO WAITS FOR WHOM"), "{said}");
    let asked = ["whatif", ".", "--eager-limit", "0", "--format", "json"];
    let answer: Value = serde_json::from_slice(&lapscope(run.path(), &asked).stdout).unwrap();
    assert_eq!(answer["scenarios"][0]["run_ns"], Value::Null);
    let deadlock = &answer["scenarios"][0]["deadlock"];
    let cycle = deadlock["cycle"].as_array().unwrap();
    // the first sends, behind 100 us of computation
    assert_eq!((&deadlock["blocked"], cycle.len()), (&2.into(), 2));
    assert!(is_near(deadlock["at_ns"].as_f64().unwrap(), COMPUTE as f64), "{deadlock}");
    let first = (&cycle[0]["call"], &cycle[0]["waits_for"][0], &cycle[0]["bytes"]);
    assert_eq!(first, (&SEND.into(), &1.into(), &1_000.into()));
    let swept = lapscope(run.path(), &["whatif", ".", "--sweep", "eager-limit=1000,0"]);
    assert_eq!(swept.status.code(), Some(3));
    assert!(text(&swept.stdout).starts_with("! the run never ends with eager-limit 0\n"));
    // the limit that it has, and the ping-pong without any, are safe
    let safe = lapscope(run.path(), &["whatif", ".", "--eager-limit", "1000"]);
    assert_eq!(safe.status.code(), Some(0), "{}", text(&safe.stdout));
    let (ping_pong, _) = ping_pong();
    let safe = lapscope(ping_pong.path(), &["whatif", ".", "--eager-limit", "0"]);
    assert_eq!(safe.status.code(), Some(0), "{}", text(&safe.stdout));
}

#[test]
fn reports_have_the_most_that_cures_can_bring() {
    let (run, recorded) = ping_pong();
    let report = json(run.path(), &["report", "."]);
    let bounds = &report["bounds"];
    let time = |key: &str| bounds[key].as_f64().unwrap_or_else(|| panic!("{key} in {bounds}"));
    assert_eq!(bounds["recorded_ns"], recorded);
    // buffered messages move whatever their ends do
    for key in ["identity_ns", "base_ns", "perfect_progress_ns"] {
        assert!(is_near(time(key), recorded as f64), "{key}: {bounds}");
    }
    assert!(is_near(time("ideal_network_ns"), expected(COMPUTE, 0, 0.0)), "{bounds}");
    let said = answer(run.path(), &["report", "."]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Best progress No gain beyond the error of the replay"), "{said}");
    assert!(words.contains("Best network 7.") && words.contains("lapscope whatif ."), "{said}");
}
