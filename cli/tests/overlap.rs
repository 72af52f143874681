//! `lapscope overlap` on runs whose overlap was worked out on paper.

use std::path::{Path, PathBuf};

use crate::fixture::{answer, failure, json};
use lapscope_fixture::edit_rank;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::random::Random;
use lapscope_fixture::small::run as small_run;
use lapscope_fixture::tables::{Processor, Rank, Starvation};
use lapscope_measure::reference::{Reference, ReferenceSource, Sample};
use lapscope_report::calibration::{Calibration, Circumstances};
use lapscope_trace::{Locality, Trace};
use serde_json::Value;

const BYTES: i64 = 100_000;
/// What that takes with nothing in between, nanoseconds.
const TRANSFER: i64 = 100_000;
const LAST: i64 = 40_000_000;

const ISEND: &str = "MPI_Isend";
const IRECV: &str = "MPI_Irecv";
const WAITALL: &str = "MPI_Waitall";
const SEND: &str = "MPI_Send";
const RECV: &str = "MPI_Recv";

fn write(directory: &Path, rank: i64, size: i64, rows: &Rows) {
    let rank = Rank { end_ns: LAST, world_size: size, ..Rank::plain(rank) };
    rank.write(directory, |file| rows.write(file));
}

/// Two ranks. Rank 0 sends, rank 1 receives:
/// - five blocking messages whose receiver is there 20 us early: 100 us each is what the reference times are made of;
/// - at 10 ms one that stands still: both post at once, and compute for 200 and 250 us until they wait;
/// - at 20 ms one whose sender waits at once, and whose receiver posts 500 us later;
/// - at 30 ms two that each side completes in one MPI_Waitall; the sender waits from the begin, the receiver computes.
pub fn run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    for number in 0..5 {
        let begin = number * 1_000_000;
        sender.blocking((SEND, "send", BYTES, 1, 7), begin + 20_000, TRANSFER);
        receiver.blocking((RECV, "recv", BYTES, 0, 7), begin, 20_000 + TRANSFER);
    }
    let (send, receive) = ((ISEND, "send", BYTES, 1, 7), (IRECV, "recv", BYTES, 0, 7));
    sender.complete(WAITALL, 10_201_000, 149_500, &[(send, 10_000_000, 1_000, 0)]);
    receiver.complete(WAITALL, 10_250_500, 100_000, &[(receive, 10_000_000, 500, 0)]);
    sender.complete(WAITALL, 20_001_000, 599_000, &[(send, 20_000_000, 1_000, 0)]);
    receiver.complete(WAITALL, 20_500_500, 99_500, &[(receive, 20_500_000, 500, 0)]);
    let sends = [(send, 29_990_000, 500, 500), (send, 29_991_000, 500, 0)];
    sender.complete(WAITALL, 29_992_000, 169_500, &sends);
    let receives = [(receive, 30_000_000, 500, 500), (receive, 30_001_000, 500, 0)];
    receiver.complete(WAITALL, 30_101_500, 60_000, &receives);
    write(directory.path(), 0, 2, &sender);
    write(directory.path(), 1, 2, &receiver);
    directory
}

fn row<'a>(rows: &'a Value, key: &str, value: impl Into<Value>) -> &'a Value {
    let value = value.into();
    let mut found = rows.as_array().unwrap().iter().filter(|row| row[key] == value);
    let row = found.next().unwrap_or_else(|| panic!("no {key} {value} in {rows:#}"));
    assert!(found.next().is_none(), "two {key} {value}");
    row
}

fn numbers<const N: usize>(row: &Value, keys: [&str; N]) -> [i64; N] {
    keys.map(|key| row[key].as_i64().unwrap_or_else(|| panic!("{key} in {row:#}")))
}

const LOST: [&str; 8] = [
    "reference_ns",
    "possible_ns",
    "achieved_low_ns",
    "achieved_high_ns",
    "lost_high_ns",
    "lost_late_partner_ns",
    "lost_no_progress_ns",
    "lost_other_ns",
];
const EXPOSED: [&str; 5] = [
    "exposed_ns",
    "exposed_late_partner_ns",
    "exposed_no_remote_progress_ns",
    "exposed_no_local_progress_ns",
    "exposed_transfer_ns",
];

#[test]
fn receives_lose_what_stood_still_and_what_one_waitall_leaves_open() {
    let overlap = json(run().path(), &["overlap", "."]);
    assert_eq!(overlap["reference"]["source"]["kind"], "run");
    assert_eq!(overlap["matching"]["messages"], 9);
    let receives = row(&overlap["kinds"], "kind", "recv");
    assert_eq!(receives["measured"], 4);
    // at 10 ms: 0 of 100000 hidden, 500 for the post, the rest stood still; at 20 ms: nothing possible;
    // at 30 ms: 39000 to 99000, and 39500 to 99500, but together no more than the 200000 that both take less the 60000 of the
    // call that ended them (rounded down for each): 58501 stood still; the 500 that one spent in posting the other cost it nothing;
    // and both lose no more than that call and their posts took
    assert_eq!(
        numbers(receives, LOST),
        [400_000, 300_000, 78_500, 139_999, 160_998, 0, 128_992, 32_006]
    );
    // all three waits are as long as the transfer, or shorter: two could have been hidden, one had no window
    assert_eq!(numbers(receives, EXPOSED), [259_500, 0, 0, 160_000, 99_500]);
    assert_eq!(
        (&receives["cause"], &receives["post_ns"]),
        (&"no_local_progress".into(), &2_000.into())
    );
}

#[test]
fn sends_wait_for_their_receiver_to_come_and_to_look() {
    let overlap = json(run().path(), &["overlap", "."]);
    let sends = row(&overlap["kinds"], "kind", "send");
    // at 10 ms: 0 of 100000, 1000 for the post; at 20 ms nothing possible; at 30 ms windows of 1000 and 500, before the receiver came,
    // of which one is in the other
    let lost = [400_000, 101_500, 0, 1_500, 100_999, 999, 99_000, 1_000];
    assert_eq!(numbers(sends, LOST), lost);
    // at 10 ms: 49500 until the receiver entered MPI, 100000 that had a window; at 20 ms: 499000 until it posted;
    // at 30 ms: 9000 until it had posted both
    assert_eq!(numbers(sends, EXPOSED), [918_000, 508_000, 49_500, 100_000, 260_500]);
    let [site] = &overlap["sites"].as_array().unwrap()[..1] else { unreachable!() };
    assert_eq!((&site["call"], &site["kind"]), (&"MPI_Isend".into(), &"send".into()));
    assert_eq!(site["completed_in"]["call"], "MPI_Waitall");
    assert_eq!(
        (&site["waited_for"]["call"], &site["waited_for"]["ranks"][0]),
        (&"MPI_Irecv".into(), &1.into())
    );
}

/// As [`sends_wait_for_their_receiver_to_come_and_to_look`], but the receiver of 20 ms had no processor for 400 us of the
/// 500 before it posted, and the sender of 10 ms for 30 us while the message moved.
#[test]
fn a_missing_processor_is_a_cause_of_its_own() {
    let run = run();
    for (rank, begin_ns, end_ns, wait_ns) in
        [(0, 10_300_500, 10_350_500, 30_000), (1, 20_000_000, 20_500_000, 400_000)]
    {
        edit_rank(run.path(), rank, |file| {
            file.insert(Starvation { begin_ns, end_ns, wait_ns });
        });
    }
    let overlap = json(run.path(), &["overlap", "."]);
    let sends = row(&overlap["kinds"], "kind", "send");
    let by_cause = numbers(sends, EXPOSED);
    assert_eq!(by_cause, [918_000, 108_000, 49_500, 70_000, 260_500]);
    assert_eq!(sends["exposed_no_processor_ns"], 430_000);
    assert_eq!(sends["cause"], "no_processor");
    // half a percent of the run time is what other processes take now and then
    let report = json(run.path(), &["report", "."]);
    let advice = report["advice"].as_array().unwrap();
    assert!(advice.iter().all(|piece| piece["cure"] != "give_processors"), "{advice:#?}");
}

#[test]
fn blocking_calls_are_told_apart_from_requests() {
    let overlap = json(run().path(), &["overlap", "."]);
    let keys = ["calls", "blocked_ns", "late_partner_ns", "no_remote_progress_ns", "transfer_ns"];
    assert_eq!(numbers(&overlap["blocking"], keys), [10, 1_100_000, 100_000, 0, 1_000_000]);
    let late = &overlap["late_pairs"][0];
    assert_eq!((&late["rank"], &late["waited_for"]), (&0.into(), &1.into()));
    assert_eq!(numbers(late, ["late_partner_ns", "no_remote_progress_ns"]), [508_000, 49_500]);
}

/// Every grouping has the same sums, and the exposed time is that of the completing calls.
fn check_sums(overlap: &Value, completing_ns: i64) {
    let totals = &overlap["totals"];
    assert_eq!(
        totals["exposed_ns"].as_i64().unwrap() + totals["unattributed_ns"].as_i64().unwrap(),
        completing_ns
    );
    let sums: Vec<&str> = totals
        .as_object()
        .unwrap()
        .iter()
        .filter(|(key, value)| value.is_i64() && *key != "run_ns" && *key != "unattributed_ns")
        .map(|(key, _)| key.as_str())
        .collect();
    assert!(sums.len() > 15, "{sums:?}");
    for group in ["kinds", "sites", "sizes", "localities", "ranks", "over_time"] {
        let rows = overlap[group].as_array().unwrap();
        for key in &sums {
            let sum: i64 = rows.iter().map(|row| row[*key].as_i64().unwrap()).sum();
            assert_eq!(sum, totals[*key].as_i64().unwrap(), "{key} of {group}");
        }
        for row in rows {
            check_row(row);
        }
    }
    check_row(totals);
}

fn check_row(row: &Value) {
    let of = |key: &str| row[key].as_i64().unwrap();
    let parts: i64 = EXPOSED[1..].iter().map(|key| of(key)).sum();
    assert_eq!(parts, of("exposed_ns"), "{row:#}");
    let lost: i64 = LOST[5..].iter().map(|key| of(key)).sum();
    assert_eq!(lost, of("lost_high_ns"), "{row:#}");
    let rising = ["achieved_low_ns", "achieved_high_ns", "possible_ns", "reference_ns"].map(of);
    assert!(0 <= rising[0] && rising.windows(2).all(|pair| pair[0] <= pair[1]), "{row:#}");
    assert!(of("possible_low_ns") <= of("possible_ns"));
    assert!(of("lost_low_ns") <= of("lost_high_ns"));
    assert!(of("lost_high_ns") <= of("possible_ns") - of("achieved_low_ns"));
    assert!(EXPOSED.iter().chain(&LOST).all(|key| of(key) >= 0), "{row:#}");
}

#[test]
fn sums_agree_with_their_parts() {
    let overlap = json(run().path(), &["overlap", "."]);
    check_sums(&overlap, 149_500 + 100_000 + 599_000 + 99_500 + 169_500 + 60_000);
}

#[test]
fn ranks_are_chosen() {
    let run = run();
    let one = json(run.path(), &["overlap", ".", "--rank", "1"]);
    assert_eq!(one["totals"]["exposed_ns"], 259_500);
    assert_eq!(
        (one["ranks"].as_array().unwrap().len(), &one["sites"][0]["call"]),
        (1, &"MPI_Irecv".into())
    );
    let error = failure(run.path(), &["overlap", ".", "--rank", "5"]);
    assert!(error.contains("--ranks 5: . has ranks 0-1"), "{error}");
}

#[test]
fn text_and_tables() {
    let run = run();
    let text = answer(run.path(), &["overlap", "."]);
    for line in [
        "reference times: undisturbed transfers of this run",
        "messages: 9 matched",
        "OVERLAP  of 400 µs",
        "EXPOSED  589 µs in calls that completed requests",
        "BLOCKING CALLS  550 µs in 10 calls",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for by in ["site", "size", "locality", "rank", "kind", "time"] {
        let csv = answer(run.path(), &["overlap", ".", "--by", by, "--format", "csv"]);
        let mut lines = csv.lines();
        let columns = lines.next().unwrap().split(',').count();
        assert!(lines.next().is_some(), "{by}");
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{by}: {csv}");
        let text = answer(run.path(), &["overlap", ".", "--by", by]);
        assert!(text.contains("exposed") && !text.contains("OVER TIME"), "{text}");
    }
}

#[test]
fn without_reference_times_nothing_is_invented() {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    let (send, receive) = ((ISEND, "send", BYTES, 1, 7), (IRECV, "recv", BYTES, 0, 7));
    sender.complete(WAITALL, 10_201_000, 149_500, &[(send, 10_000_000, 1_000, 0)]);
    receiver.complete(WAITALL, 10_250_500, 100_000, &[(receive, 10_000_000, 500, 0)]);
    write(directory.path(), 0, 2, &sender);
    write(directory.path(), 1, 2, &receiver);
    let overlap = json(directory.path(), &["overlap", "."]);
    assert_eq!(overlap["reference"]["source"]["kind"], "none");
    let totals = &overlap["totals"];
    assert_eq!((&totals["achieved_low"], &totals["measured"]), (&Value::Null, &0.into()));
    check_sums(&overlap, 249_500);
    let text = answer(directory.path(), &["overlap", "."]);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("not enough data for reference times"), "{text}");
    assert!(words.join(" ").contains("lapscope calibrate -- "), "{text}");
}

#[test]
fn a_run_in_which_detail_ended_says_so() {
    let directory = small_run();
    let overlap = json(directory.path(), &["overlap", "."]);
    let notes = overlap["reference"]["notes"].as_array().unwrap();
    let is_told = |note: &Value| note.as_str().unwrap().starts_with("LAPSCOPE_MAX_MB was reached");
    assert_eq!(notes.iter().filter(|note| is_told(note)).count(), 1, "{notes:?}");
}

#[test]
fn reference_times_are_chosen() {
    let run = run();
    let files: Vec<PathBuf> =
        [0, 1].map(|rank| run.path().join(format!("rank-{rank}.db"))).to_vec();
    let (trace, _) = Trace::read(&files, &|_| ()).unwrap();
    let circumstances = Circumstances::of_run(&trace, &files).unwrap();
    // twice as long as the run's own
    let sample = Sample {
        locality: Locality::Node,
        bytes: BYTES as u64,
        ns: 2 * TRANSFER,
        is_upwards: true,
        is_disturbed: false,
    };
    let times = Reference::fit([sample; 9], [], ReferenceSource::None);
    let file = run.path().join("slow.json");
    Calibration::new(Vec::new(), 2, circumstances, times).write(&file).unwrap();
    let transfer = |wanted: &str| {
        let overlap = json(run.path(), &["overlap", ".", "--reference", wanted]);
        (overlap["reference"]["source"]["kind"].clone(), overlap["totals"]["reference_ns"].clone())
    };
    assert_eq!(transfer("run"), ("run".into(), 800_000.into()));
    assert_eq!(transfer("slow.json"), ("calibration".into(), 1_600_000.into()));
    let error = failure(run.path(), &["overlap", ".", "--reference", "none.json"]);
    assert!(error.contains("none.json"), "{error}");
    let error = failure(run.path(), &["overlap", ".", "--reference", "calibration"]);
    assert!(error.contains("no calibration fits this run"), "{error}");
}

/// Three ranks that send each other messages of some sizes at random moments, in windows of random lengths, waited for
/// in groups of random sizes, some of them received before they are waited for, some never completed.
pub fn random_run(directory: &Path, seed: u64) -> i64 {
    let mut random = Random(seed);
    let mut rows = [(); 3].map(|()| Rows::default());
    let mut completing = 0;
    for (rank, rows) in (0..).zip(&mut rows) {
        let mut now = 1_000;
        while now < LAST / 2 {
            let mut requests = Vec::new();
            for _ in 0..1 + random.below(4) {
                let bytes = [0, 100, BYTES][random.below(3) as usize];
                let peer = (rank + 1 + random.below(2)) % 3;
                let what = match random.below(2) {
                    0 => (ISEND, "send", bytes, peer, 7),
                    _ => (IRECV, "recv", bytes, peer, 7),
                };
                let post = random.below(2_000);
                requests.push((what, now, post, 0));
                now += post + random.below(100);
            }
            let begin = now + random.below(300_000);
            let duration = [random.below(300), random.below(400_000)][random.below(2) as usize];
            if random.below(20) == 0 {
                rows.pend(&requests);
            } else {
                rows.complete(WAITALL, begin, duration, &requests);
                completing += duration;
            }
            now = begin + duration + random.below(50_000);
            let blocking = random.below(100_000);
            let peer = (rank + 1) % 3;
            rows.blocking((SEND, "send", BYTES, peer, 7), now, blocking);
            now += blocking + 10;
        }
    }
    for (rank, rows) in (0..).zip(&rows) {
        write(directory, rank, 3, rows);
    }
    completing
}

#[test]
fn no_time_is_lost_or_counted_twice_in_random_runs() {
    for seed in 1..=12 {
        let directory = tempfile::tempdir().unwrap();
        let completing = random_run(directory.path(), seed);
        check_sums(&json(directory.path(), &["overlap", ".", "--top", "0"]), completing);
    }
}

/// The receiver posts, computes for 100 us, and tests until the message is there, of which time 300 us are inside MPI; the sender
/// comes 400 us after the first test.
#[test]
fn a_loop_of_tests_waits_for_whoever_comes_late() {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    for round in 0..20 {
        let begin = round * 1_000_000;
        let receive = ((IRECV, "recv", BYTES, 0, 7), begin, 500, 300_000);
        receiver.poll((begin + 100_000, begin + 600_000), receive);
        sender.blocking((SEND, "send", BYTES, 1, 7), begin + 500_000, TRANSFER);
    }
    write(directory.path(), 0, 2, &sender);
    write(directory.path(), 1, 2, &receiver);
    let overlap = json(directory.path(), &["overlap", "."]);
    let parts = ["calls", "blocked_ns", "late_partner_ns", "transfer_ns"];
    let [loops, polled, late, transfer] = numbers(&overlap["polling"], parts);
    assert_eq!((loops, polled), (20, 6_000_000));
    // 400 of 500 us, as well as that divides
    let is_nearly = |ns: i64, expected: i64| (ns - expected).abs() * 100 <= expected;
    assert!(is_nearly(late, 4_800_000) && is_nearly(transfer, 1_200_000), "{late} {transfer}");
    let report = json(directory.path(), &["report", "."]);
    assert_eq!(report["overlap"]["polling"], overlap["polling"]);
    assert_eq!(report["summary"]["causes"][0]["cause"], "late_partner");
    assert_eq!(report["advice"][0]["waiting"]["call"], "MPI_Test");
    // of each round 500 us are the loop, though 300 of them alone are inside MPI: the others are no computation
    let [looped] = numbers(&overlap["ranks"][1], ["waiting_loop_ns"]);
    assert_eq!(looped, 20 * 500_000);
    let useful = |rank: usize| {
        let keys = ["run_ns", "mpi_ns", "unsuccessful_test_ns"];
        let [run, mpi, tests] = numbers(&report["ranks"][rank], keys);
        run - mpi + tests - if rank == 1 { looped } else { tests }
    };
    let [all, most] = numbers(&report["efficiency"], ["useful_ns", "most_useful_ns"]);
    assert_eq!((all, most), (useful(0) + useful(1), useful(0)));
    let text = answer(directory.path(), &["report", "."]);
    assert!(
        text.contains("Loops of tests that waited took 3.00 ms: 79.9 % late partner"),
        "{text}"
    );
}

/// Rounds in which a receive is tested from 10 us on until the message of a sender that comes after 500 us is there, the last test
/// but one at `last`: what the report says of them.
fn tested(last: i64, in_tests: i64) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    for round in 0..20 {
        let begin = round * 1_000_000;
        let receive = ((IRECV, "recv", BYTES, 0, 7), begin, 500, in_tests);
        let tests = [10_000, last, 600_000].map(|since| begin + since);
        receiver.poll_until(tests, 1_000, receive);
        sender.blocking((SEND, "send", BYTES, 1, 7), begin + 500_000, TRANSFER);
    }
    write(directory.path(), 0, 2, &sender);
    write(directory.path(), 1, 2, &receiver);
    json(directory.path(), &["report", "."])
}

/// The last test that found nothing took 40 us, as it moved most of the message; or the program tested for 20 us, and then computed
/// until a test found all of it done.
#[test]
fn between_the_tests_of_a_loop_nothing_is_computed() {
    let advice = |report: &Value| -> Vec<String> {
        let cures = report["advice"].as_array().unwrap().iter();
        cures.map(|it| it["cure"].as_str().unwrap().to_owned()).collect()
    };
    let waits = tested(560_000, 300_000);
    assert_eq!(waits["overlap"]["polling"]["calls"], 20);
    // what it computes before the first test
    let overlappable = waits["summary"]["overlappable_high_ns"].as_i64().unwrap();
    assert!(overlappable <= 20 * 10_000, "{overlappable}");
    assert!(!advice(&waits).contains(&"test".to_owned()), "{:?}", advice(&waits));
    let computes = tested(30_000, 15_000);
    assert_eq!(computes["overlap"]["polling"]["calls"], 0);
}

/// Rounds in which a receive is tested from 10 to 900 us until the message of a sender that comes after 810 us is there, so far apart
/// by turns; the rank was on a processor for so long in all: what is said of its loops.
fn tested_apart(apart: [i64; 2], run_ns: i64) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    for round in 0..20 {
        let begin = round * 1_000_000;
        let apart = apart[usize::from(round % 2 == 1)];
        let receive = ((IRECV, "recv", BYTES, 0, 7), begin, 500, 9_000);
        let tests = [10_000, 900_000 - apart, 900_000].map(|since| begin + since);
        receiver.poll_until(tests, apart, receive);
        sender.blocking((SEND, "send", BYTES, 1, 7), begin + 810_000, TRANSFER);
    }
    write(directory.path(), 0, 2, &sender);
    let rank = Rank { end_ns: LAST, world_size: 2, ..Rank::plain(1) };
    rank.write(directory.path(), |file| {
        file.insert(Processor { run_ns, ..Processor::default() });
        receiver.write(file);
    });
    let loops = json(directory.path(), &["overlap", "."])["test_loops"].clone();
    let said = answer(directory.path(), &["report", "."]).contains("waits in a loop of tests");
    assert_eq!(said, !loops.as_array().unwrap().is_empty(), "{loops:#}");
    loops
}

/// What passes between two tests is waiting where the rank slept, and work where it was on a processor, or where it takes long now
/// and short then.
#[test]
fn a_rank_that_sleeps_between_tests_waits() {
    const AWAKE: i64 = 4_000_000;
    let loops = tested_apart([100_000, 100_000], AWAKE);
    let keys = ["loops", "unsuccessful_tests", "span_ns", "late_partner_ns", "apart_low_ns"];
    assert_eq!(numbers(&loops[0], keys), [20, 160, 17_800_000, 16_000_000, 111_250], "{loops:#}");
    assert_eq!(loops[0]["asleep_low_ns"], 17_800_000 - AWAKE);
    assert_eq!((&loops[0]["rank"], &loops[0]["call"]), (&1.into(), &"MPI_Test".into()));
    let nobody = Value::Array(Vec::new());
    assert_eq!(tested_apart([100_000, 100_000], LAST), nobody);
    assert_eq!(tested_apart([30_000, 200_000], AWAKE), nobody);
    let at_once = tested_apart([1_000, 1_000], LAST);
    assert_eq!(numbers(&at_once[0], ["span_ns"]), [17_800_000]);
    assert_eq!(at_once[0]["asleep_low_ns"], Value::Null);
}
