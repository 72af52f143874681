//! What injection did, cost and gained, on rows whose answers were worked out by hand.

use crate::fixture::{answer, json};
use lapscope_fixture::small::{self, run as small_run, IRECV, ISEND, WAITALL};
use lapscope_fixture::tables::{Call, Injection, Injector, Rank, Request, Setting};
use lapscope_fixture::{call_id, edit_rank, Fixture};
use serde_json::{json, Value};
use tempfile::TempDir;

const US: i64 = 1_000;
const SLOT: i64 = 1_000 * US;

/// Requests posted at `app+0x100`, completed at `app+0x300` together with a small receive.
#[derive(Default)]
struct Requests {
    /// Begin of the post, wait, arm.
    all: Vec<(i64, i64, bool)>,
}

impl Requests {
    /// Posted for 1 us; the call that completes it begins 60 us later and takes `wait`.
    fn add(&mut self, post_begin: i64, wait: i64, arm: bool) {
        self.all.push((post_begin, wait, arm));
    }

    fn write(&self, file: &Fixture) {
        small::operations(file);
        for &(post_begin_ns, wait, arm) in &self.all {
            let (begin_ns, duration_ns) = (post_begin_ns + 60 * US, Some(wait));
            let wait = Call { operation_id: WAITALL, begin_ns, duration_ns, ..Call::default() };
            let completion_id = Some(file.insert(Call { completed: 2, ..wait }));
            let posted = Request { completion_id, post_begin_ns, ..Request::default() };
            let small = Request { operation_id: IRECV, mpi_ns: Some(0), ..posted };
            let injection_arm = Some(i64::from(arm));
            file.insert(Request {
                operation_id: ISEND,
                post_ns: 1_000,
                injection_arm,
                ..small.clone()
            });
            file.insert(Request { post_ns: 100, ..small });
        }
    }
}

/// In pair k of slots the first is on when k is even. On: five requests, 200 us apart, that wait for 30 us. Off: four, 250 us
/// apart, that wait for 80 us, in odd pairs 88 us.
fn alternating(pairs: i64) -> Requests {
    let mut requests = Requests::default();
    for slot in 0..2 * pairs {
        let (pair, is_on) = (slot / 2, (slot % 2 == 0) == (slot / 2 % 2 == 0));
        let (count, wait, arm) = match (is_on, pair % 2) {
            (true, _) => (5, 30, true),
            (false, 0) => (4, 80, false),
            (false, _) => (4, 88, false),
        };
        for at in 0..count {
            requests.add(slot * SLOT + 10 * US + at * SLOT / count, wait * US, arm);
        }
    }
    requests
}

/// A rank that injects by timer; `slot`: as an A/B run.
fn injector(file: &Fixture, slot: Option<i64>) {
    file.insert(Injector {
        clock: Some("perf"),
        ab_slot_ns: slot,
        test_ns: Some(400),
        interrupt_ns: Some(2_500),
        check_ns: Some(150),
        spent_ns: 320_000,
        ..Injector::default()
    });
    file.insert(Setting { name: "LAPSCOPE_INJECT_BUDGET", value: "3", source: "default" });
}

/// 3 us in tests and interrupts for each of the requests that were injected for.
fn injection(file: &Fixture, requests: i64) {
    file.insert(Injection {
        call_id: call_id("MPI_Isend"),
        call_path_id: Some(1),
        requests,
        tests: 3 * requests,
        found: requests,
        test_ns: 2 * US * requests,
        idle_ns: US * requests / 2,
        interrupts: 2 * requests,
        deferred: 7,
        interrupt_ns: US * requests,
        ..Injection::default()
    });
}

fn write(directory: &TempDir, rank: i64, end_ns: i64, rows: impl FnOnce(&Fixture)) {
    let whole = Rank { init_end_ns: 0, end_ns, summarized: 0, ..Rank::new(rank) };
    whole.write(directory.path(), rows);
}

fn ab_run(pairs: i64) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        write(&directory, rank, 2 * pairs * SLOT, |file| {
            injector(file, Some(SLOT));
            injection(file, 5 * pairs);
            alternating(pairs).write(file);
        });
    }
    directory
}

fn of_report(run: &TempDir) -> Value {
    json(run.path(), &["report", "."])["injection"].clone()
}

#[test]
fn gain_of_a_call_site() {
    let injection = of_report(&ab_run(20));
    let site = &injection["sites"][0];
    assert_eq!((&site["call"], &site["ranks"]), (&json!("MPI_Isend"), &json!(2)));
    let address = json!([{"module": "/nowhere/app", "build_id": "aa11", "address": 0x100}]);
    assert_eq!((&site["addresses"], &site["site"]["address"]), (&address, &json!(0x100)));
    let gain = &site["gain"];
    assert_eq!((&gain["requests_on"], &gain["requests_off"]), (&json!(200), &json!(160)));
    assert_eq!((&gain["slots_on"], &gain["slots_off"]), (&json!(20), &json!(20)));
    // The small receive has no part of the call's time. Off: the mean of 1 + 80 and 1 + 88 us.
    assert_eq!(
        (&gain["exposed_on_ns"], &gain["exposed_off_ns"], &gain["cost_ns"]),
        (&json!(31_000), &json!(85_000), &json!(3_000))
    );
    assert_eq!((&gain["verdict"], &gain["estimate_ns"]), (&json!("gain"), &json!(51_000)));
    // Pairs differ by 50 or 58 us: a standard deviation of 4 sqrt(20/19) us; 2.0930 times it over sqrt(20) is 1.921 us.
    let reach = |key: &str| gain[key].as_i64().unwrap() - 51_000;
    assert_eq!((reach("low_ns"), reach("high_ns")), (-1_921, 1_921));
    assert_eq!(gain["run_estimate_ns"], json!(360 * 51_000));
    assert_eq!(gain["run_low_ns"].as_i64().unwrap() / 360, 51_000 - 1_921);
}

/// From post to post it takes 200 us with injection, 250 us without.
#[test]
fn gain_of_the_program() {
    let injection = of_report(&ab_run(20));
    let whole = &injection["whole"];
    assert_eq!((&whole["verdict"], &whole["slots_on"]), (&json!("gain"), &json!(20)));
    for key in ["estimate", "low", "high"] {
        assert!((whole[key].as_f64().unwrap() - 0.2).abs() < 1e-9, "{key} of {whole}");
    }
    let iteration = whole["iteration_ns"].as_i64().unwrap();
    assert!((190_000..275_000).contains(&iteration), "{iteration}");
    assert_eq!(injection["ab_slot_ns"], json!(SLOT));
}

#[test]
fn what_was_done_and_what_it_cost() {
    let injection = of_report(&ab_run(20));
    let totals = &injection["totals"];
    let counts =
        [("requests", 200), ("tests", 600), ("found", 200), ("interrupts", 400), ("deferred", 14)];
    let times = [
        ("test_ns", 400 * US),
        ("idle_ns", 100 * US),
        ("interrupt_ns", 200 * US),
        ("spent_ns", 640 * US),
    ];
    for (key, number) in counts.into_iter().chain(times) {
        assert_eq!(totals[key], json!(number), "{key}");
    }
    assert_eq!(totals["run_ns"], json!(2 * 40 * SLOT));
    let rank = &injection["ranks"][1];
    assert_eq!(
        (&rank["rank"], &rank["mode"], &rank["clock"]),
        (&json!(1), &json!("timer"), &json!("perf"))
    );
    assert_eq!((&rank["test_ns"], &rank["budget"]), (&json!(400), &json!(0.03)));
}

#[test]
fn too_few_slots_to_tell() {
    let run = ab_run(7);
    let injection = of_report(&run);
    let (gain, whole) = (&injection["sites"][0]["gain"], &injection["whole"]);
    assert_eq!(
        (&gain["verdict"], &gain["estimate_ns"]),
        (&json!("not_enough_slots"), &Value::Null)
    );
    assert_eq!((&whole["verdict"], &whole["estimate"]), (&json!("not_enough_slots"), &Value::Null));
    // Four iterations of 0.25 ms fit into a slot of 1 ms just so: shorter ones would not tell more.
    assert_eq!(whole["suggested_ab_ms"], Value::Null);
    let text = answer(run.path(), &["report", "."]);
    assert!(text.contains("7 on, 7 off"), "{text}");
}

/// One post every three slots.
#[test]
fn iterations_longer_than_slots() {
    let directory = tempfile::tempdir().unwrap();
    let mut requests = Requests::default();
    for at in 0..60 {
        requests.add(at * 3 * SLOT, 80 * US, at % 2 == 0);
    }
    write(&directory, 0, 180 * SLOT, |file| {
        injector(file, Some(SLOT));
        injection(file, 30);
        requests.write(file);
    });
    let whole = &of_report(&directory)["whole"];
    assert_eq!(
        (&whole["verdict"], &whole["estimate"]),
        (&json!("iterations_too_long"), &Value::Null)
    );
    assert_eq!(whole["suggested_ab_ms"], json!(20));
    let text = answer(directory.path(), &["report", "."]);
    assert!(text.contains("LAPSCOPE_INJECT_AB_MS=20"), "{text}");
}

/// The same waits with and without.
#[test]
fn no_gain_is_said_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let mut requests = Requests::default();
    for slot in 0..80 {
        let arm = (slot % 2 == 0) == (slot / 2 % 3 == 0);
        for at in 0..4 {
            requests.add(slot * SLOT + at * 250 * US, (30 + slot * 7 % 11) * US, arm);
        }
    }
    write(&directory, 0, 80 * SLOT, |file| {
        injector(file, Some(SLOT));
        injection(file, 160);
        requests.write(file);
    });
    let injection = of_report(&directory);
    // A cost of 3 us a request, and nothing for it.
    let gain = &injection["sites"][0]["gain"];
    assert_eq!(gain["verdict"], json!("loss"), "{gain}");
    let whole = &injection["whole"];
    assert_eq!(whole["verdict"], json!("no_measurable_gain"), "{whole}");
    let text = answer(directory.path(), &["report", "."]);
    assert!(text.contains("No measurable gain for the program"), "{text}");
    assert!(text.contains("loses: better left out"), "{text}");
}

#[test]
fn without_slots_there_is_no_gain_to_tell() {
    let directory = tempfile::tempdir().unwrap();
    let mut requests = Requests::default();
    requests.add(10 * US, 30 * US, true);
    write(&directory, 0, SLOT, |file| {
        injector(file, None);
        injection(file, 1);
        let off = Injection { call_id: call_id("MPI_Irecv"), policy: 0, ..Injection::default() };
        file.insert(Injection { call_path_id: Some(2), ..off });
        requests.write(file);
    });
    write(&directory, 1, SLOT, |file| {
        let problem = Some("malloc is the executable's own");
        file.insert(Injector { problem, ..Injector::default() });
    });
    let injection = of_report(&directory);
    assert_eq!((&injection["whole"], &injection["sites"][0]["gain"]), (&Value::Null, &Value::Null));
    let text = answer(directory.path(), &["report", "."]);
    for said in [
        "LAPSCOPE_INJECT_AB=1 beside LAPSCOPE_INJECT would show it",
        "! rank 1: malloc is the executable's own",
        "app+0x200: left out by the policy",
    ] {
        assert!(text.contains(said), "{said} in {text}");
    }
}

#[test]
fn only_the_ranks_asked_for() {
    let run = ab_run(20);
    let report = json(run.path(), &["report", ".", "--rank", "1"]);
    assert_eq!(report["injection"]["ranks"].as_array().unwrap().len(), 1);
    assert_eq!(report["injection"]["sites"][0]["gain"]["requests_on"], json!(100));
}

#[test]
fn a_merged_file_says_the_same() {
    let run = ab_run(20);
    let separate = of_report(&run);
    answer(run.path(), &["export", "sqlite", ".", "-o", "merged.db"]);
    assert_eq!(json(run.path(), &["report", "merged.db"])["injection"], separate);
}

#[test]
fn settings_of_injection_are_part_of_a_comparison() {
    let (before, after) = (ab_run(1), ab_run(1));
    for (run, value) in [(&before, "off"), (&after, "timer")] {
        edit_rank(run.path(), 0, |file| {
            file.insert(Setting { name: "LAPSCOPE_INJECT", value, ..Setting::default() });
        });
    }
    let diff = json(before.path(), &["diff", ".", after.path().to_str().unwrap()]);
    let change = json!({"kind": "option", "name": "LAPSCOPE_INJECT", "a": "off", "b": "timer"});
    assert_eq!(diff["configuration"], json!([change]));
}

#[test]
fn without_injection_nothing_is_said() {
    let run = small_run();
    assert_eq!(of_report(&run), Value::Null);
    assert!(!answer(run.path(), &["report", "."]).contains("INJECTION"));
    let text = answer(run.path(), &["overlap", ".", "--by", "injection"]);
    assert!(text.contains("No rank was asked to inject tests"), "{text}");
}

#[test]
fn overlap_says_the_same() {
    let run = ab_run(20);
    assert_eq!(json(run.path(), &["overlap", "."])["injection"], of_report(&run));
    let csv = answer(run.path(), &["overlap", ".", "--by", "injection", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    let head: Vec<&str> = lines[0].split(',').collect();
    let row: Vec<&str> = lines[1].split(',').collect();
    assert_eq!((lines.len(), head.len()), (2, row.len()));
    let cell = |key: &str| row[head.iter().position(|name| *name == key).unwrap()];
    assert_eq!(
        (cell("call"), cell("gain_estimate_ns"), cell("module")),
        ("MPI_Isend", "51000", "/nowhere/app")
    );
}

#[test]
fn as_text() {
    let run = ab_run(20);
    let text = answer(run.path(), &["report", "."]);
    let section: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("INJECTION"))
        .take_while(|line| !line.is_empty())
        .collect();
    insta::assert_snapshot!("injection", section.join("\n"));
}
