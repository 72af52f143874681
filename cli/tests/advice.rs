//! Advice on runs whose troubles are made by hand: what is to be done where, and for how much time. Moments are microseconds.

use crate::fixture::program::Program;
use crate::fixture::{answer, json};
use lapscope_fixture::calls::Calls;
use lapscope_fixture::edit_rank;
use lapscope_fixture::tables::{Cvar, Injector, Operation, Rank};
use serde_json::{json, Value};
use tempfile::TempDir;

/// Two ranks on one clock, of 1 ms from MPI_Init to MPI_Finalize.
pub fn run(ranks: [&Calls; 2]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for calls in ranks {
        let rank = Rank { end_ns: 1_000_000, ..Rank::plain(calls.rank) };
        rank.write(directory.path(), |file| calls.write(file));
    }
    directory
}

fn report(run: &TempDir) -> Value {
    let report = json(run.path(), &["report", "."]);
    // Every nanosecond at most once.
    let advice: i64 = advice(&report).iter().map(|advice| ns(advice, "time_ns")).sum();
    let totals = &report["totals"];
    let parts = ["exposed_ns", "blocking_ns", "collective_ns", "posting_ns"];
    let all: i64 = parts.iter().map(|part| ns(totals, part)).sum();
    assert!(advice <= all, "{advice} ns of {all} ns");
    report
}

fn advice(report: &Value) -> &Vec<Value> {
    report["advice"].as_array().unwrap()
}

fn ns(object: &Value, key: &str) -> i64 {
    object[key].as_i64().unwrap_or_else(|| panic!("{key} in {object}"))
}

/// The most important of its kind.
pub fn find<'a>(report: &'a Value, cure: &str) -> &'a Value {
    let mut found = advice(report).iter().filter(|advice| advice["cure"] == cure);
    found.next().unwrap_or_else(|| panic!("no {cure} in {:#}", report["advice"]))
}

fn address(place: &Value) -> i64 {
    place["site"]["address"].as_i64().unwrap()
}

const LARGE: i64 = 1 << 20;

/// Rank 0 waits from 15 to 900; rank 1 has posted and computes until 880.
pub fn receiver_computes() -> [Calls; 2] {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, LARGE, 10);
    ranks[0].wait(3, 15, 900, &[send]);
    let receive = ranks[1].receive(5, LARGE, 5);
    ranks[1].wait(6, 880, 900, &[receive]);
    ranks
}

#[test]
fn a_receiver_that_computes_is_to_test() {
    let [a, b] = receiver_computes();
    let run = run([&a, &b]);
    let report = report(&run);
    let test = find(&report, "test");
    assert_eq!((&test["cause"], &test["helps"]), (&json!("no_remote_progress"), &json!(true)));
    let change = test["change"].as_array().unwrap();
    assert_eq!((address(&change[0]), address(&change[1])), (0x500, 0x600));
    assert_eq!((&test["change_ranks"], &test["waiting_ranks"]), (&json!([1]), &json!([0])));
    assert_eq!(address(&test["waiting"]), 0x300);
    // 880 - 15 of the sender's wait; and the receiver's own wait could have been in its window.
    assert_eq!(ns(&test["evidence"], "exposed_no_remote_progress_ns"), 865_000);
    assert_eq!(ns(&test["evidence"], "exposed_no_local_progress_ns"), 20_000);
    assert_eq!(ns(test, "time_ns"), 885_000);
    assert_eq!(test["share"], json!(0.4425));
    let sentence = test["sentence"].as_str().unwrap();
    let expected = "Call MPI_Test now and then in the computation between MPI_Irecv app+0x500 and MPI_Waitall app+0x600, on \
                    rank 1: messages of 1 MiB stand still there while rank 0 waits for them in MPI_Waitall app+0x300; \
                    lapscope can do that: lapscope tune -- <launch line>.";
    assert_eq!(sentence, expected);
    let text = answer(run.path(), &["report", "."]);
    assert!(text.contains("44.2 %    442 µs  Call MPI_Test now and then"), "{text}");
}

/// Where lapscope makes tests already, it does not offer to.
#[test]
fn injection_is_not_offered_to_who_has_it() {
    let [a, b] = receiver_computes();
    let run = run([&a, &b]);
    edit_rank(run.path(), 1, |file| {
        file.insert(Injector { mode: "calls", ..Injector::default() });
    });
    let report = report(&run);
    let sentence = find(&report, "test")["sentence"].as_str().unwrap();
    assert!(
        sentence.ends_with("while rank 0 waits for them in MPI_Waitall app+0x300."),
        "{sentence}"
    );
}

/// Rank 1 posts its receive at 500, when it comes out of another MPI call.
#[test]
fn a_receiver_inside_mpi_is_to_post_earlier() {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, LARGE, 10);
    ranks[0].wait(3, 15, 520, &[send]);
    ranks[1].block(Operation::other_call("MPI_Comm_dup", 4), 10, 499);
    let receive = ranks[1].receive(5, LARGE, 500);
    ranks[1].wait(6, 502, 520, &[receive]);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let earlier = find(&report, "post_receive_earlier");
    assert_eq!(ns(earlier, "time_ns"), 485_000);
    assert_eq!((address(&earlier["change"][0]), &earlier["change_ranks"]), (0x500, &json!([1])));
    assert!(earlier["evidence"]["late_partner_outside"].as_f64().unwrap() < 0.01);
    assert!(earlier["sentence"].as_str().unwrap().contains("the receiver was inside MPI"));
}

/// Rank 1 computes until 500 and hardly waits: nothing to be done in the communication.
#[test]
fn a_busy_partner_has_no_cure() {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, LARGE, 10);
    ranks[0].wait(3, 15, 520, &[send]);
    let receive = ranks[1].receive(5, LARGE, 500);
    ranks[1].wait(6, 502, 520, &[receive]);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let late = find(&report, "partner_late");
    assert_eq!((&late["helps"], ns(late, "time_ns")), (&json!(false), 485_000));
    assert_eq!(late["evidence"]["late_partner_outside"], json!(1.0));
    assert_eq!(ns(&late["evidence"], "waited_ns"), 505_000);
    assert_eq!(ns(&late["evidence"], "partner_waited_ns"), 18_000);
    assert!(late["sentence"].as_str().unwrap().contains("the work is uneven"), "{late}");
}

/// The same lateness in a barrier.
#[test]
fn whoever_comes_last_is_named() {
    let mut ranks = Calls::pair();
    ranks[0].block(Operation::collective("MPI_Barrier", 5), 100, 710);
    ranks[1].block(Operation::collective("MPI_Barrier", 5), 700, 710);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let late = find(&report, "partner_late");
    assert_eq!((&late["change_ranks"], ns(late, "time_ns")), (&json!([1]), 600_000));
    assert_eq!(late["waiting_ranks"], json!([0]));
}

/// Two ranks come late to a barrier in turn, by as much, and compute equally long.
fn late_in_turn(late: i64) -> TempDir {
    let mut ranks = Calls::pair();
    for (turn, begin) in (0..).zip([50, 300, 550, 800]) {
        let comes = |rank: i64| begin + if turn % 2 == rank { late } else { 0 };
        let end = begin + late + 1;
        for rank in [0, 1] {
            let barrier = Operation::collective("MPI_Barrier", 5);
            ranks[rank as usize].block(barrier, comes(rank), end);
        }
    }
    run([&ranks[0], &ranks[1]])
}

#[test]
fn the_order_is_named_where_even_work_would_have_shown() {
    let headline = |run: &TempDir| {
        let report = report(run);
        let late = find(&report, "partner_late");
        // all compute equally long: only even work at each turn gains
        assert_eq!(late["replay"]["is_gain"], late["replay"]["of_region"], "{late:#}");
        late["headline"].as_str().unwrap().to_owned()
    };
    assert!(headline(&late_in_turn(100)).starts_with("Let ranks need each other less often"));
    // a replay that tells hundredths says nothing of less
    assert!(headline(&late_in_turn(6)).starts_with("Even out the work"));
}

/// Two sends, each waited for before the next is posted, while a receive is under way. Only the first wait keeps a send back.
#[test]
fn sends_waited_for_one_by_one_are_to_be_waited_for_together() {
    let mut ranks = Calls::pair();
    let receive = ranks[0].receive(2, 64, 5);
    let first = ranks[0].send(1, LARGE, 10);
    ranks[0].wait(3, 15, 300, &[first]);
    let second = ranks[0].send(1, LARGE, 310);
    ranks[0].wait(3, 315, 600, &[second]);
    ranks[0].wait(6, 605, 620, &[receive]);
    let one = ranks[1].receive(2, LARGE, 6);
    let two = ranks[1].receive(2, LARGE, 7);
    let reply = ranks[1].send(1, 64, 8);
    ranks[1].wait(4, 290, 300, &[one]);
    ranks[1].wait(4, 590, 600, &[two]);
    ranks[1].wait(5, 601, 602, &[reply]);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let together = find(&report, "wait_together");
    assert_eq!(ns(together, "time_ns"), 275_000);
    let change = together["change"].as_array().unwrap();
    assert_eq!((address(&change[0]), address(&change[1])), (0x300, 0x600));
    // The receiver could test as well, of which there is one sentence, and no second promise of the same time.
    let or_test = &together["or_test"];
    let places = or_test["change"].as_array().unwrap();
    assert_eq!((address(&places[0]), address(&places[1])), (0x200, 0x400));
    assert_eq!(or_test["sentence"], json!("Or call MPI_Test now and then in the computation between MPI_Irecv app+0x200 and MPI_Waitall app+0x400, where receivers are meanwhile; lapscope can do that: lapscope tune -- <launch line>."));
    // The other wait is the receiver's matter.
    assert_eq!(ns(&find(&report, "test")["evidence"], "exposed_no_remote_progress_ns"), 275_000);
}

#[test]
fn a_blocking_send_is_to_be_non_blocking() {
    let mut ranks = Calls::pair();
    ranks[0].blocking_send(4, LARGE, 10, 420);
    let receive = ranks[1].receive(5, LARGE, 400);
    ranks[1].wait(6, 402, 420, &[receive]);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let send = find(&report, "make_nonblocking");
    assert_eq!((ns(send, "time_ns"), address(&send["waiting"])), (390_000, 0x400));
    assert_eq!(send["sentence"], json!("Make MPI_Send app+0x400 an MPI_Isend that is completed later: it blocks until the receive is posted, on rank 0."));
}

/// Nothing is computed between post and wait.
#[test]
fn nothing_to_hide_behind() {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, LARGE, 10);
    ranks[0].wait(3, 11, 200, &[send]);
    let receive = ranks[1].receive(5, LARGE, 10);
    ranks[1].wait(6, 11, 200, &[receive]);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let nothing: Vec<&Value> = advice(&report).iter().collect();
    assert_eq!(nothing.len(), 2, "{:#}", report["advice"]);
    for advice in nothing {
        assert_eq!(
            (&advice["cure"], ns(advice, "time_ns")),
            (&json!("nothing_to_hide_behind"), 189_000)
        );
        assert_eq!(advice["cause"], "transfer");
    }
}

/// Whether there is other work nobody can see: so it is said first, and as a condition.
#[test]
fn calls_that_block_while_they_transfer_are_to_be_made_non_blocking() {
    let mut ranks = Calls::pair();
    for rank in &mut ranks {
        let reduce = Operation { bytes: LARGE, ..Operation::collective("MPI_Allreduce", 4) };
        rank.block(reduce, 10, 400);
    }
    let run = run([&ranks[0], &ranks[1]]);
    let report = report(&run);
    let first = &report["advice"][report["summary"]["first"].as_u64().unwrap() as usize];
    assert_eq!((&first["cure"], ns(first, "time_ns")), (&json!("nothing_to_hide_behind"), 780_000));
    let text = answer(run.path(), &["report", "."]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("Do first Make MPI_Allreduce app+0x400 non-blocking, if there is"),
        "{text}"
    );
    assert!(
        text.contains("May win At most 39.0 % of the run time, if so much other work"),
        "{text}"
    );
}

/// Both are there from the begin. Rank 0 computes for 489 us and waits from 500 to 900, rank 1 waits for it. How long a
/// transfer takes is not known: all of both waits may be the transfer, or nothing. A calibration of 100 us tells.
#[test]
fn without_reference_times_advice_has_bounds() {
    let mut ranks = Calls::pair();
    let receive = ranks[0].receive(1, LARGE, 10);
    ranks[0].wait(3, 500, 900, &[receive]);
    let send = ranks[1].send(5, LARGE, 10);
    ranks[1].wait(6, 11, 900, &[send]);
    let run = run([&ranks[0], &ranks[1]]);
    let bounds = |report: &Value| {
        let advice = find(report, "test");
        ["time_low_ns", "time_ns", "time_high_ns"].map(|key| ns(advice, key))
    };
    let vague = report(&run);
    let totals = &vague["overlap"]["totals"];
    let of_window = |totals: &Value| {
        ["exposed_no_local_progress_low_ns", "exposed_no_local_progress_high_ns"]
            .map(|key| ns(totals, key))
    };
    assert_eq!((bounds(&vague), of_window(totals)), ([0, 889_000, 889_000], [0, 400_000]));
    let text = answer(run.path(), &["report", "."]);
    assert!(text.contains("0 to 444 µs  Call MPI_Test"), "{text}");
    assert!(text.contains("0 to 200 µs"), "{text}");
    assert!(text.contains("NEXT\n  lapscope calibrate -- <launch line>"), "{text}");

    let point = r#"{"bytes": 1048576.0, "ns": 100000.0, "low_ns": 90000.0, "high_ns": 105000.0, "samples": 36}"#;
    let calibration = format!(
        r#"{{"format": 3, "created": "2026-05-04T12:30:00Z", "lapscope_version": "0.1.0", "launch": [], "ranks": 2,
        "hosts": ["node1"], "mpi_library": "Open MPI v4.1.4, package: x", "environment": {{}},
        "times": {{"localities": {{"node": [{point}]}}, "collectives": {{}}}}}}"#
    );
    std::fs::create_dir(run.path().join("calibrations")).unwrap();
    std::fs::write(run.path().join("calibrations/one.json"), calibration).unwrap();
    let known = report(&run);
    assert_eq!(known["overlap"]["reference"]["source"]["kind"], "calibration");
    let [low, time, high] = bounds(&known);
    assert_eq!([low, time, high], [489_000 + 90_000, 489_000 + 100_000, 489_000 + 105_000]);
    let text = answer(run.path(), &["report", "."]);
    assert!(text.contains("294 µs  Call MPI_Test") && !text.contains("calibrate -- "), "{text}");
}

#[test]
fn ranks_that_help_come_first_and_little_is_left_out() {
    let [mut a, mut b] = receiver_computes();
    a.block(Operation::collective("MPI_Barrier", 5), 950, 952);
    b.block(Operation::collective("MPI_Barrier", 5), 950, 951);
    let report = report(&run([&a, &b]));
    let cures: Vec<&str> =
        advice(&report).iter().map(|advice| advice["cure"].as_str().unwrap()).collect();
    assert_eq!(cures[0], "test");
    let little = |advice: &&Value| advice["share"].as_f64().unwrap() < 0.001;
    assert_eq!(advice(&report).iter().find(little), None);
}

/// Three posts of 60 us; the message is gone when the call returns.
#[test]
fn long_posts_are_told() {
    let mut ranks = Calls::pair();
    for message in 0..3 {
        let send = ranks[0].send(1, 4096, 10 + 100 * message);
        ranks[0].requests[send].post = 60;
        ranks[0].wait(3, 90 + 100 * message, 91 + 100 * message, &[send]);
        let receive = ranks[1].receive(5, 4096, 500 + 10 * message);
        ranks[1].wait(6, 502 + 10 * message, 503 + 10 * message, &[receive]);
    }
    let directory = run([&ranks[0], &ranks[1]]);
    assert_eq!(find(&report(&directory), "expensive_posts")["helps"], json!(false));
    edit_rank(directory.path(), 0, |file| {
        file.insert(Cvar { name: "btl_vader_eager_limit", value: "4096" });
    });
    let report = report(&directory);
    let posts = find(&report, "lower_limit");
    assert_eq!((ns(posts, "time_ns"), &posts["cause"]), (180_000, &json!("posting")));
    assert!(posts["sentence"]
        .as_str()
        .unwrap()
        .contains("a lower btl_vader_eager_limit (4096) avoids that"));
}

/// Rank 0 waits for its send from 15 to 300, then for the first of two receives, computes with it from 310 to 500, and waits for the
/// second: from 300 to 500 it is 195 us outside MPI, behind which so much of the wait could have been hidden.
#[test]
fn a_wait_for_sends_could_come_behind_the_receives() {
    let mut ranks = Calls::pair();
    let first = ranks[0].receive(2, 64, 5);
    let second = ranks[0].receive(2, 64, 7);
    let send = ranks[0].send(1, LARGE, 10);
    ranks[0].wait(3, 15, 300, &[send]);
    ranks[0].wait(4, 305, 310, &[first]);
    ranks[0].wait(6, 500, 510, &[second]);
    let one = ranks[1].receive(2, LARGE, 6);
    let replies = [ranks[1].send(1, 64, 8), ranks[1].send(1, 64, 9)];
    ranks[1].wait(4, 290, 300, &[one]);
    ranks[1].wait(5, 301, 302, &replies);
    let report = report(&run([&ranks[0], &ranks[1]]));
    let behind = find(&report, "wait_behind");
    assert_eq!((ns(behind, "time_ns"), &behind["helps"]), (195_000, &json!(true)));
    let change = behind["change"].as_array().unwrap();
    assert_eq!((address(&change[0]), address(&change[1])), (0x300, 0x600));
    let sentence = behind["sentence"].as_str().unwrap();
    let expected = "Complete the sends of MPI_Waitall app+0x300 behind the receives, after MPI_Waitall app+0x600: what is computed \
                    on the way there needs no send to be complete, as long as it leaves their buffers alone, on rank 0.";
    assert_eq!(sentence, expected);
    // What is left of the wait, 275 in all, is the receiver's matter.
    assert_eq!(ns(&find(&report, "test")["evidence"], "exposed_no_remote_progress_ns"), 80_000);
}

/// Two messages, each posted and waited for on a line of its own, as exchanges in several directions do: one piece of advice.
#[test]
fn one_cure_in_one_function_is_one_piece_of_advice() {
    let program = Program::new(
        "void f(int);\nvoid post(void) {\n f(1);\n f(2);\n}\nvoid finish(void) {\n f(3);\n f(4);\n}\nvoid other(void) {\n f(5);\n}\n",
    );
    let mut ranks = Calls::pair();
    let sends = [ranks[0].send(1, LARGE, 10), ranks[0].send(1, LARGE, 12)];
    ranks[0].wait(3, 15, 520, &sends[..1]);
    ranks[0].wait(4, 521, 560, &sends[1..]);
    ranks[1].block(Operation::other_call("MPI_Comm_dup", 6), 10, 499);
    let first = ranks[1].receive(3, LARGE, 500);
    ranks[1].block(Operation::other_call("MPI_Comm_dup", 6), 502, 529);
    let second = ranks[1].receive(4, LARGE, 530);
    ranks[1].wait(5, 532, 560, &[first, second]);
    let directory = run([&ranks[0], &ranks[1]]);
    let at = |rank: i64, lines: &[(i64, u32)]| {
        edit_rank(directory.path(), rank, |file| program.put_frames(file, lines));
    };
    at(0, &[(1, 3), (3, 7), (4, 8)]);
    at(1, &[(3, 3), (4, 4), (5, 11), (6, 11)]);
    let report = report(&directory);
    let earlier: Vec<&Value> =
        advice(&report).iter().filter(|it| it["cure"] == "post_receive_earlier").collect();
    assert_eq!(earlier.len(), 1, "{earlier:#?}");
    // Late by 500 - 15 and by 530 - 521.
    assert_eq!((ns(earlier[0], "time_ns"), &earlier[0]["waiting_sites"]), (494_000, &json!(2)));
    let expected = "Post MPI_Irecv post x.c:3, 4 earlier, on rank 1: rank 0 waits for it in MPI_Waitall finish x.c:7, 8; the \
                    receiver was inside MPI and could have taken them.";
    assert_eq!(earlier[0]["sentence"], json!(expected));
    assert_eq!(earlier[0]["waiting"]["other_lines"], json!([8]));
}

/// Rank 0 waits for rank 1, which waits for rank 2, which computes until 700 and then sends.
#[test]
fn a_chain_of_waits_is_followed_to_where_it_began() {
    let mut ranks = [0, 1, 2].map(Calls::new);
    let send = |path, to| Operation::send("MPI_Isend", path, (64, to, 7));
    let receive = |path, from| Operation::receive("MPI_Irecv", path, (64, from, 7));
    let last = ranks[2].begin(send(1, 1), 700);
    ranks[2].wait(3, 702, 720, &[last]);
    let taken = ranks[1].begin(receive(5, 2), 5);
    ranks[1].wait(6, 10, 720, &[taken]);
    let on = ranks[1].begin(send(3, 0), 722);
    ranks[1].wait(3, 724, 740, &[on]);
    let end = ranks[0].begin(receive(5, 1), 5);
    ranks[0].wait(4, 10, 740, &[end]);
    let directory = tempfile::tempdir().unwrap();
    for calls in &ranks {
        let rank = Rank { end_ns: 1_000_000, world_size: 3, ..Rank::plain(calls.rank) };
        rank.write(directory.path(), |file| calls.write(file));
    }
    let report = report(&directory);
    let late = advice(&report).iter().filter(|it| it["cure"] == "partner_late");
    let late: Vec<&Value> = late.filter(|it| address(&it["waiting"]) == 0x400).collect();
    assert_eq!(late.len(), 1, "{:#}", report["advice"]);
    assert_eq!((ns(late[0], "time_ns"), &late[0]["change_ranks"]), (712_000, &json!([1])));
    let began = &late[0]["began"];
    assert_eq!((&began["rank"], &began["doing"]), (&json!(2), &json!("computing")));
    assert_eq!((address(&began["place"]), &began["share"]), (0x100, &json!(1.0)));
    let expected = "MPI_Waitall app+0x400 waits for rank 1, which is inside MPI for 99.7 % of that time, mostly waiting as well: \
                    100.0 % of these waits began with rank 2, which came late from computing to MPI_Isend app+0x100.";
    assert_eq!(late[0]["sentence"], json!(expected));
}

/// Two calls of one line are told apart by their columns; of a loop that was unrolled all copies have the same.
#[test]
fn two_calls_of_one_line_are_two_sites() {
    let program = Program::new("void f(int);\nvoid finish(void) {\n f(3);      f(4);\n}\n");
    let mut ranks = Calls::pair();
    let sends = [ranks[0].send(1, LARGE, 10), ranks[0].send(1, LARGE, 12)];
    ranks[0].wait(3, 15, 520, &sends[..1]);
    ranks[0].wait(4, 521, 560, &sends[1..]);
    ranks[0].wait(5, 570, 580, &[]);
    let directory = run([&ranks[0], &ranks[1]]);
    edit_rank(directory.path(), 0, |file| {
        for (path, column) in [(3, 0), (4, 8), (5, 0)] {
            program.put_frame(file, path, 3, column);
        }
    });
    let report = json(directory.path(), &["report", "."]);
    let completing = report["completing_sites"].as_array().unwrap().iter();
    let sites: Vec<(&Value, &Value)> =
        completing.map(|site| (&site["site"]["column"], &site["time_ns"])).collect();
    assert_eq!(sites, [(&json!(2), &json!(515_000)), (&json!(13), &json!(39_000))]);
    let text = answer(directory.path(), &["report", "."]);
    assert!(text.contains("finish x.c:3:2") && text.contains("finish x.c:3:13"), "{text}");
}

/// The program itself completes them: nothing is transferred, and nothing is to be done in the communication.
#[test]
fn generalized_requests_transfer_nothing() {
    let mut ranks = Calls::pair();
    let start = Operation::other_call("MPI_Grequest_start", 1);
    let request = ranks[0].begin(Operation { kind: "generalized", bytes: 6, ..start }, 10);
    ranks[0].wait(3, 15, 520, &[request]);
    let directory = run([&ranks[0], &ranks[1]]);
    let report = report(&directory);
    assert_eq!(advice(&report), &Vec::<Value>::new());
    assert_eq!(report["kinds"], json!([]));
    assert_eq!(report["overlap"]["reference"]["notes"], json!([]));
    let overlap = json(directory.path(), &["overlap", "."]);
    assert_eq!(overlap["totals"]["measured"], json!(0));
    assert_eq!(overlap["reference"]["notes"], json!([]));
}
