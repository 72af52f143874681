//! Ranks into which the driver of a GPU came.

use std::path::Path;

use crate::advice;
use crate::fixture::{answer, json};
use crate::html::page;
use crate::overlap;
use crate::whatif::ping_pong;
use lapscope_fixture::calls::Calls;
use lapscope_fixture::edit_rank;
use lapscope_fixture::small::run as small_run;
use serde_json::Value;
use tempfile::TempDir;

/// Rank 0 has a driver, whose memory the first of its three requests sends from.
pub fn run() -> TempDir {
    let run = small_run();
    edit_rank(run.path(), 0, |file| {
        file.change(
            "INSERT INTO option VALUES (0, 'accelerator', 'libcuda', 'recorded'), (0, 'device_buffers', 'none', 'recorded');
             INSERT INTO request_memory VALUES (1, 'device'), (2, 'host')",
        );
    });
    run
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number is that of a run without GPUs; what it is called is not.
#[test]
fn exposed_is_an_upper_bound() {
    let (plain, with) = (small_run(), run());
    let [without, report] = [&plain, &with].map(|run| json(run.path(), &["report", "."]));
    let summary = |report: &Value| {
        (
            report["summary"]["exposed_ns"].clone(),
            report["summary"]["exposed_is_upper_bound"].clone(),
        )
    };
    assert_eq!(summary(&without).0, summary(&report).0);
    assert_eq!((summary(&without).1, summary(&report).1), (false.into(), true.into()));
    let marks = |report: &Value| {
        let advice = report["advice"].as_array().unwrap();
        advice.iter().map(|it| it["rests_on_upper_bound"] == true).collect::<Vec<_>>()
    };
    assert!(marks(&without).iter().all(|marked| !marked), "{}", without["advice"]);
    assert!(marks(&report).contains(&true), "{}", report["advice"]);
    let accelerator = &report["head"]["accelerators"][0];
    let expected = serde_json::json!({
        "library": "libcuda", "device_buffers": "none", "ranks": 1, "recorded_ranks": 0, "unused_ranks": 0,
        "missing": {"sums": 1}
    });
    assert_eq!(*accelerator, expected);

    let said = |run: &Path| [words(&answer(run, &["report", "."])), words(&page(run, &[]))];
    let bound = "An upper bound: not all that GPUs compute meanwhile is recorded.";
    for text in said(with.path()) {
        assert!(text.matches(bound).count() > 1, "of what is exposed, and of advice: {text}");
        assert!(
            text.contains("libcuda in 1 rank, MPI takes no buffers in device memory"),
            "{text}"
        );
        let offload = "waits for kernels (cuStreamSynchronize), counts as computation";
        assert_eq!(text.matches(offload).count(), 1, "{text}");
    }
    let text = &said(with.path())[0];
    assert!(text.contains("Exposed At most "), "{text}");
    assert!(text.contains("What GPUs compute there is not, or not all, recorded."), "{text}");
    for text in said(plain.path()) {
        assert!(!text.contains("pper bound: ") && !text.contains("cuStream"), "{text}");
    }
}

/// What a rank's file says, the reason's name, and words of the reason and of the way out.
type Reason = (&'static str, &'static str, [&'static str; 2]);

const REASONS: [Reason; 8] = [
    ("SELECT 1", "not_named", ["was not set", "by lapscope run; if it was, lapscope doctor says why not."]),
    (
        "INSERT INTO environment VALUES (0, 'CUDA_INJECTION64_PATH', '/opt/nsys/libToolsInjection64.so')",
        "other_tool",
        ["names /opt/nsys/libToolsInjection64.so", "unset CUDA_INJECTION64_PATH"],
    ),
    (
        "INSERT INTO environment VALUES (0, 'CUDA_INJECTION64_PATH', '/x/liblapscope-cuda.so')",
        "not_loaded",
        ["has not loaded", "lapscope doctor"],
    ),
    ("UPDATE rank SET summarized = 4", "sums", ["LAPSCOPE_RECORD=sums), and sums leave out", "without LAPSCOPE_RECORD=sums."]),
    (
        "INSERT INTO device_recorder VALUES (0, 'CUPTI', 'another tool in the process has CUPTI', 1, 0)",
        "cupti",
        ["another tool in the process has CUPTI", "without that tool"],
    ),
    ("INSERT INTO device_recorder VALUES (0, 'CUPTI', NULL, 1, 7)", "lost", ["had no room", "LAPSCOPE_MAX_MB"]),
    (
        "INSERT INTO device_recorder VALUES (0, 'CUPTI', NULL, 1, 0); UPDATE rank SET ended = 'killed'",
        "no_end",
        ["until it ends", "MPI_Finalize"],
    ),
    (
        "UPDATE option SET value = 'libamdhip64' WHERE name = 'accelerator'",
        "other_vendor",
        ["NVIDIA's GPUs alone", "rocprof-sys-run"],
    ),
];

/// The report, the page and JSON give the same reason, and no other way out than its own.
#[test]
fn each_reason_that_gpus_are_not_recorded_is_said_with_its_way_out() {
    for (change, key, words_of_it) in REASONS {
        let run = run();
        edit_rank(run.path(), 0, |file| {
            file.change("UPDATE rank SET summarized = 0");
            file.change(change);
        });
        let report = json(run.path(), &["report", "."]);
        assert_eq!(
            report["head"]["accelerators"][0]["missing"],
            serde_json::json!({key: 1}),
            "{report:#}"
        );
        assert_eq!(report["summary"]["exposed_is_upper_bound"], true, "{key}");
        let problems = report["problems"].as_array().unwrap().iter();
        let mut said = problems.filter(|it| it["kind"] == "accelerator");
        let said = said.next().unwrap_or_else(|| panic!("{key}: {}", report["problems"]));
        assert_eq!(said["ranks"], serde_json::json!([0]));
        let said = said["message"].as_str().unwrap();
        let page = page(run.path(), &[]).replace("&#39;", "'");
        for text in [words(&answer(run.path(), &["report", "."])), words(&page)] {
            assert!(text.contains(said), "{key}: {said} is not in {text}");
        }
        for part in words_of_it {
            assert!(said.contains(part), "{key}: {part} is not in {said}");
        }
    }
}

/// Whose driver was not asked has none, and neither has what was recorded before there was such a table.
#[test]
fn requests_have_the_memory_of_their_data() {
    let run = run();
    let listed = || {
        let found = json(run.path(), &["requests", ".", "--sort", "begin"]);
        let rows = found["requests"].as_array().unwrap().iter();
        rows.map(|row| row["memory"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["device".into(), "host".into(), Value::Null]);
    let text = answer(run.path(), &["requests", ".", "--sort", "begin"]);
    assert_eq!(text.matches(", in device memory").count(), 1, "{text}");
    let sql = [
        "sql",
        ".",
        "SELECT count(memory) FROM requests WHERE memory = 'device'",
        "--format",
        "csv",
    ];
    assert!(answer(run.path(), &sql).ends_with("\n1\n"));
    for rank in [0, 1] {
        edit_rank(run.path(), rank, |file| {
            file.change("DROP VIEW pending; DROP VIEW requests; DROP TABLE request_memory");
            file.change("DROP TABLE device_recorder; DROP TABLE device_busy");
        });
    }
    assert_eq!(listed(), [Value::Null, Value::Null, Value::Null]);
}

/// Of ranks with CUPTI: when kernels ran, microseconds.
fn add_kernels(run: &Path, rank: i64, kernels: &[(i64, i64)]) {
    edit_rank(run, rank, |file| {
        file.change(&format!(
            "INSERT INTO option VALUES ({rank}, 'accelerator', 'libcuda', 'recorded');
             INSERT INTO device_recorder VALUES ({rank}, 'libcupti.so.12', NULL, 1000, 0)"
        ));
    });
    kernels.iter().for_each(|&kernel| add_kernel(run, rank, kernel));
}

fn add_kernel(run: &Path, rank: i64, (begin, end): (i64, i64)) {
    let (begin, end) = (1_000 * begin, 1_000 * end);
    let row = format!("{rank}, 0, 'kernel', {begin}, {end}, {end} - {begin}");
    edit_rank(run, rank, |file| file.change(&format!("INSERT INTO device_busy VALUES ({row})")));
}

fn ns(object: &Value, key: &str) -> i64 {
    object[key].as_i64().unwrap_or_else(|| panic!("{key} in {object}"))
}

/// Of the MPI_Waitall that lasts until 30,001 kernels take 5,001 ns, shared out to its three requests, and of the MPI_Send 1,000.
#[test]
fn what_is_beside_kernels_is_exposed_nowhere() {
    let (plain, with) = (small_run(), small_run());
    add_kernels(with.path(), 0, &[(25, 32), (44, 46)]);
    let [without, report] = [&plain, &with].map(|run| json(run.path(), &["report", "."]));
    let (before, totals) = (&without["totals"], &report["totals"]);
    for key in ["mpi_ns", "posting_ns", "collective_ns", "unsuccessful_test_ns", "other_ns"] {
        assert_eq!(before[key], totals[key], "{key}");
    }
    let less = |key| ns(before, key) - ns(totals, key);
    assert_eq!((less("exposed_ns"), less("blocking_ns")), (5_001, 1_000));
    assert_eq!(ns(totals, "overlapped_with_gpu_ns"), 6_001);
    let summary = |key| ns(&without["summary"], key) - ns(&report["summary"], key);
    assert_eq!((summary("exposed_ns"), summary("blocked_ns")), (6_001, 1_000));

    let sum = |report: &Value, list: &str, call: &str, key: &str| -> i64 {
        let rows = report[list].as_array().unwrap().iter();
        rows.filter(|row| call.is_empty() || row["call"] == call).map(|row| ns(row, key)).sum()
    };
    for (list, call, key, taken) in [
        ("sites", "MPI_Isend", "exposed_ns", 3_334),
        ("sites", "MPI_Irecv", "exposed_ns", 1_667),
        ("sites", "MPI_Send", "time_ns", 1_000),
        ("completing_sites", "MPI_Waitall", "time_ns", 5_001),
        ("size_classes", "", "exposed_ns", 5_001),
        ("size_classes", "", "time_ns", 6_001),
    ] {
        let [before, now] = [&without, &report].map(|report| sum(report, list, call, key));
        assert_eq!(before - now, taken, "{list} {call} {key}");
    }
    let completed_in = |report: &Value| {
        let sites = report["sites"].as_array().unwrap().iter();
        let mut of_sends = sites.filter(|site| site["call"] == "MPI_Isend");
        ns(&of_sends.next().unwrap()["completed_in"], "exposed_ns")
    };
    assert_eq!(completed_in(&without) - completed_in(&report), 3_334);
    // so say the sites alone
    let sites = json(with.path(), &["sites", "."]);
    for (call, key) in [("MPI_Isend", "exposed_ns"), ("MPI_Send", "time_ns")] {
        assert_eq!(sum(&sites, "sites", call, key), sum(&report, "sites", call, key), "{call}");
    }
    let text = words(&answer(with.path(), &["report", "."]));
    assert!(text.contains(", most of it in collectives (6.7 %)"), "{text}");
    let mut spreads = report["alike"]["distributions"].as_array().unwrap().iter();
    assert!(spreads.any(|it| it["measure"] == "overlapped_with_gpu_ns"), "{}", report["alike"]);
    let ranks = words(&answer(with.path(), &["report", ".", "--each-rank"]));
    assert!(ranks.contains("completing beside a GPU posting"), "{ranks}");

    let of_other = json(with.path(), &["report", ".", "--ranks", "1"]);
    assert_eq!(of_other["summary"]["overlapped_with_gpu_ns"], Value::Null);
}

/// Of one rank kernels are recorded. The other has a GPU of which nothing is known, and so nothing of all GPUs; or it has a driver alone.
#[test]
fn efficiencies_of_gpus_are_those_of_all_or_of_none() {
    let run = kernels_next_to_waits();
    let report = || json(run.path(), &["report", "."]);
    let both = report();
    assert_eq!(
        (&both["gpu_efficiency"]["gpus"], ns(&both["gpu_efficiency"], "computing_ns")),
        (&2.into(), 100_000)
    );
    edit_rank(run.path(), 1, |file| {
        file.change("DELETE FROM device_recorder; DELETE FROM device_busy")
    });
    let one = report();
    assert_eq!(one["gpu_efficiency"], Value::Null);
    assert_eq!(one["summary"]["exposed_is_upper_bound"], true);
    edit_rank(run.path(), 1, |file| {
        file.change("INSERT INTO option VALUES (1, 'cuda', 'unused', 'recorded')")
    });
    let unused = report();
    let gpus = &unused["gpu_efficiency"];
    assert_eq!((&gpus["gpus"], ns(gpus, "computing_ns")), (&1.into(), 60_000));
    assert_eq!(unused["summary"]["exposed_is_upper_bound"], false);
    let accelerator = &unused["head"]["accelerators"][0];
    let ranks = ["ranks", "recorded_ranks", "unused_ranks"].map(|key| ns(accelerator, key));
    assert_eq!((ranks, &accelerator["missing"]), ([2, 1, 1], &serde_json::json!({})));
}

/// What is exposed of the one run is in part beside kernels of the other.
#[test]
fn runs_with_and_without_time_of_gpus_are_told_apart() {
    let (with, without) = (kernels_next_to_waits(), kernels_next_to_waits());
    add_kernel(with.path(), 0, (100, 150));
    for rank in 0..2 {
        edit_rank(without.path(), rank, |file| {
            file.change("DELETE FROM device_recorder; DELETE FROM device_busy");
        });
    }
    let paths = [&with, &without].map(|run| run.path().to_str().unwrap().to_owned());
    let text = words(&answer(with.path(), &["diff", &paths[0], &paths[1]]));
    let said = "kernels beside MPI A recorded, and not in what is exposed B not, or not all, recorded of 2 ranks, and in what is exposed";
    assert!(text.contains(said), "{text}");
    let difference = |other: &str| words(&answer(with.path(), &["diff", &paths[0], other]));
    let beside = "MPI beside a GPU 25.0 µs";
    assert!(!difference(&paths[1]).contains(beside), "of B it is not known");
    assert!(difference(&paths[0]).contains(beside));
    assert!(page(with.path(), &[&paths[0]]).contains("MPI beside a GPU"));
    let scaled = words(&answer(with.path(), &["report", &paths[0], &paths[1]]));
    assert!(scaled.contains("(cuStreamSynchronize), counts as computation"), "{scaled}");
}

/// Both wait from 61 to 250 for transfers that nothing is computed beside. Behind that rank 0 runs kernels for 60 us; rank 1 has
/// run them for 40 us, before it posts.
fn kernels_next_to_waits() -> TempDir {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, 1 << 20, 60);
    ranks[0].wait(3, 61, 250, &[send]);
    let receive = ranks[1].receive(5, 1 << 20, 60);
    ranks[1].wait(6, 61, 250, &[receive]);
    let run = advice::run([&ranks[0], &ranks[1]]);
    add_kernels(run.path(), 0, &[(260, 320)]);
    add_kernels(run.path(), 1, &[(15, 55)]);
    run
}

/// What CUPTI reported counts, and what it may have kept makes the rest an upper bound, for a reason that is said.
#[test]
fn kernels_that_may_be_missing_have_a_reason() {
    let with = kernels_next_to_waits();
    edit_rank(with.path(), 0, |file| {
        file.change("INSERT INTO device_busy VALUES (0, 0, 'kernel', 100000, 120000, 20000)");
    });
    let report = |reason: &str| {
        edit_rank(with.path(), 0, |file| {
            file.change(&format!("UPDATE device_recorder SET problem = {reason}"));
        });
        json(with.path(), &["report", "."])
    };
    let (all, in_part) = (report("NULL"), report("'CUPTI has kept a buffer of records'"));
    for (report, is_bound) in [(&all, false), (&in_part, true)] {
        assert_eq!(report["summary"]["exposed_is_upper_bound"], is_bound);
        assert_eq!(ns(&report["summary"], "overlapped_with_gpu_ns"), 20_000);
    }
    let text = words(&answer(with.path(), &["report", "."]));
    for said in [
        "not all that they compute is recorded: CUPTI has kept a buffer of records",
        "An upper bound: not all that GPUs compute meanwhile is recorded. Communication beside kernels of the rank's GPUs, ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn waits_next_to_kernels_are_advised_to_be_beside_them() {
    let run = kernels_next_to_waits();
    let report = json(run.path(), &["report", "."]);
    let behind = advice::find(&report, "wait_after_kernels");
    assert_eq!(
        (ns(behind, "time_ns"), &behind["waiting_ranks"]),
        (60_000, &serde_json::json!([0]))
    );
    let before = advice::find(&report, "start_before_kernels");
    assert_eq!(
        (ns(before, "time_ns"), &before["waiting_ranks"]),
        (40_000, &serde_json::json!([1]))
    );
    assert_eq!(before["change"][1]["call"], "MPI_Irecv");
    let all: i64 = report["advice"].as_array().unwrap().iter().map(|it| ns(it, "time_ns")).sum();
    assert_eq!(all, 2 * 189_000, "no time is promised twice: {}", report["advice"]);
    let text = words(&answer(run.path(), &["report", "."]));
    for said in [
        "Wait in MPI_Waitall app+0x300 after the kernels that are started",
        "Start the exchange, MPI_Irecv app+0x500, before the kernels",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// Of the receives that are worked out in [`overlap`] two waits have kernels beside all of them: the requests that these complete lose
/// no more than their posts take, and what one spent in posting the other.
#[test]
fn kernels_beside_a_wait_are_computation_of_its_requests() {
    let run = overlap::run();
    add_kernels(run.path(), 1, &[(10_250, 10_351), (30_101, 30_162)]);
    let found = json(run.path(), &["overlap", "."]);
    let mut kinds = found["kinds"].as_array().unwrap().iter();
    let receives = kinds.find(|row| row["kind"] == "recv").unwrap();
    let numbers = |keys: [&str; 4]| keys.map(|key| ns(receives, key));
    assert_eq!(
        numbers(["reference_ns", "possible_ns", "achieved_low_ns", "achieved_high_ns"]),
        [400_000, 300_000, 298_000, 298_000]
    );
    assert_eq!(
        numbers(["lost_high_ns", "lost_no_progress_ns", "exposed_ns", "overlapped_with_gpu_ns"]),
        [1_500, 0, 99_500, 160_000]
    );
}

/// Rank 1 receives from 1,505 to 1,715 us.
#[test]
fn a_replay_has_kernels_beside_the_same_calls() {
    let (run, _) = ping_pong();
    let exposed = || {
        let answer = json(run.path(), &["whatif", "."]);
        ["recorded", "identity"].map(|of| ns(&answer[of], "exposed_ns"))
    };
    let without = exposed();
    add_kernels(run.path(), 1, &[(1_600, 1_700)]);
    let with = exposed();
    assert_eq!(without[0] - with[0], 100_000);
    assert!((without[1] - with[1] - 100_000).abs() < 1_000, "{without:?} {with:?}");
}
