//! Messages that come before their receives: how many, how many bytes, whose, and what the process grew by.

use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{answer, build};
use serde_json::{json, Value};

/// Of `tests/apps/unexpected.c`.
const MESSAGES: u64 = 3000;
const BYTES: u64 = 2000;
const BLOCK: u64 = 50;

struct Answer {
    unexpected: Value,
    /// The report, on one line.
    text: String,
    printed: String,
}

fn run(mpi: &Mpi, ranks: u32, how: &str) -> Answer {
    let place = place();
    let program = build::app(mpi, "unexpected");
    let job = Job::new(mpi, ranks, program, Form::Preload, place.path()).args([how]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let directory = job.run_directory();
    let text = lapscope(["report".as_ref(), directory.as_os_str()]);
    Answer {
        unexpected: answer::ask("report", &directory)["unexpected"].clone(),
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        printed: outcome.stdout,
    }
}

fn volume(messages: u64) -> Value {
    json!({ "messages": messages, "bytes": messages * BYTES })
}

#[test]
fn a_sender_that_runs_ahead_is_found_to_the_message() {
    for mpi in mpi::debian() {
        let Answer { unexpected, text, printed } = run(mpi, 2, "ahead");
        assert_eq!(unexpected["low"], volume(MESSAGES), "{}", mpi.name);
        assert_eq!(unexpected["high"], volume(MESSAGES), "{}", mpi.name);
        let [pile] = answer::rows(&unexpected, "ranks") else { panic!("{unexpected:#}") };
        assert_eq!((&pile["rank"], &pile["low"]), (&json!(1), &volume(MESSAGES)), "{}", mpi.name);
        assert_eq!(pile["tags"], json!([1]), "{}", mpi.name);
        assert_eq!(pile["from"][0]["rank"], json!(0), "{}", mpi.name);
        assert_eq!(pile["sent"][0]["site"]["function"], json!("send_all"), "{}", mpi.name);
        // it receives what is sent last first: an MPI_Ssend before that would never end
        assert_eq!(pile["overtaken"], json!(MESSAGES), "{}", mpi.name);
        for both in ["Unsafe Relies on buffering: ranks 0 and 1", "as the line Unsafe says"] {
            assert!(text.contains(both), "{}: {text}", mpi.name);
        }
        let grown = printed.lines().find_map(|line| line.strip_prefix("grown "));
        let grown: u64 = grown.and_then(|it| it.trim().parse().ok()).expect("printed by rank 1");
        eprintln!("{}: {} bytes kept, the process grew by {grown}", mpi.name, MESSAGES * BYTES);
        // envelopes, and pieces of memory that are larger than what lies in them
        assert!((MESSAGES * BYTES..4 * MESSAGES * BYTES).contains(&grown), "{}: {grown}", mpi.name);
    }
}

#[test]
fn buffered_sends_count_and_are_told_apart() {
    for mpi in share!(mpi::debian()) {
        let Answer { unexpected, text, .. } = run(mpi, 2, "buffered");
        let [pile] = answer::rows(&unexpected, "ranks") else { panic!("{unexpected:#}") };
        assert_eq!((&pile["low"], &pile["buffered"]), (&volume(MESSAGES), &json!(MESSAGES)));
        assert_eq!(unexpected["buffered"], volume(MESSAGES), "{}", mpi.name);
        let both = ["in the buffers that their senders attached", "would end in a deadlock"];
        assert!(both.iter().all(|it| text.contains(it)), "{}: {text}", mpi.name);
        assert!(!text.contains("Unsafe"), "{}: {text}", mpi.name);
    }
}

#[test]
fn a_receiver_that_only_comes_late_is_told_of_synchronous_sends() {
    for mpi in mpi::debian() {
        let Answer { unexpected, text, .. } = run(mpi, 2, "behind");
        let [pile] = answer::rows(&unexpected, "ranks") else { panic!("{unexpected:#}") };
        assert_eq!((&pile["rank"], &pile["overtaken"]), (&json!(1), &json!(0)), "{}", mpi.name);
        assert!(text.contains("in a hundred an MPI_Ssend"), "{}: {text}", mpi.name);
    }
}

#[test]
fn receives_that_are_posted_first_are_credited() {
    for mpi in mpi::debian() {
        let Answer { unexpected, text, .. } = run(mpi, 2, "early");
        assert_eq!(unexpected["early"], volume(MESSAGES), "{}", mpi.name);
        assert_eq!(unexpected["early_share"], json!(1.0), "{}", mpi.name);
        assert_eq!(unexpected["high"], volume(0), "{}", mpi.name);
        assert!(!text.contains("UNEXPECTED"), "{}: {text}", mpi.name);
    }
}

#[test]
fn senders_that_are_held_back_are_not_accused() {
    for mpi in mpi::debian() {
        // by synchronous sends
        let Answer { unexpected, text, .. } = run(mpi, 2, "throttled");
        let kept = MESSAGES / BLOCK * (BLOCK - 1);
        assert_eq!(unexpected["low"], volume(kept), "{}", mpi.name);
        assert_eq!(unexpected["ranks"], json!([]), "{}", mpi.name);
        assert!(!text.contains("UNEXPECTED"), "{}: {text}", mpi.name);
        // by MPI itself, whose receiver is in none of its calls
        let Answer { unexpected, .. } = run(mpi, 2, "sleeping");
        let [low, high] = ["low", "high"].map(|key| answer::number(&unexpected[key], "messages"));
        assert!(0.0 < low && low <= high && high <= 400.0, "{}: {unexpected:#}", mpi.name);
        assert_eq!(unexpected["ranks"], json!([]), "{}", mpi.name);
    }
}

#[test]
fn who_is_flooded_from_all_sides_is_named() {
    for mpi in mpi::debian() {
        let Answer { unexpected, .. } = run(mpi, 3, "flood");
        let [pile] = answer::rows(&unexpected, "ranks") else { panic!("{unexpected:#}") };
        assert_eq!((&pile["rank"], &pile["low"]), (&json!(0), &volume(2 * MESSAGES)));
        assert_eq!(pile["any_source"], json!(2 * MESSAGES), "{}", mpi.name);
        let from: Vec<(&Value, &Value)> =
            answer::rows(pile, "from").iter().map(|it| (&it["rank"], &it["messages"])).collect();
        let each = json!(MESSAGES);
        assert_eq!(from, [(&json!(1), &each), (&json!(2), &each)], "{}", mpi.name);
    }
}
