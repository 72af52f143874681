//! `lapscope thresholds` on runs of two ranks whose MPI has a known limit.

use crate::fixture::{answer, failure, json};
use lapscope_fixture::small::run as small_run;
use lapscope_fixture::tables::{Call, Cvar, Operation, Rank, Request};
use lapscope_fixture::{edit_rank, Fixture};
use serde_json::Value;

/// How an MPI treats a message.
struct Library {
    /// Up to this size a send needs nobody.
    inline: i64,
    /// Up to this size it needs the receiver inside MPI, beyond it the receive.
    eager: i64,
    /// Bytes that may be on their way to a receiver together.
    together: i64,
}

const MPICH: Library = Library { inline: 8_000, eager: 8_000, together: i64::MAX };
const OPEN_MPI: Library = Library { inline: 256, eager: 4_000, together: i64::MAX };

/// Rows of both ranks under way to being written. A row's operation is its place among its rank's, from 0.
#[derive(Default)]
struct Pair {
    sends: Vec<Operation<'static>>,
    receives: Vec<Operation<'static>>,
    /// Operation, wait, and its request without ids.
    sender: Vec<(usize, Call, Request)>,
    /// Operation (`None`: a look) and call.
    receiver: Vec<(Option<usize>, Call)>,
    now: i64,
}

fn call(begin_ns: i64, duration_ns: i64) -> Call {
    Call { begin_ns, duration_ns: Some(duration_ns), ..Call::default() }
}

impl Pair {
    /// A burst of sends, each waited for in turn from 10 us on. The receiver posts 3 ms later, and has looked into MPI
    /// 1.5 ms after the first send if it is one that looks; the message it finds there it receives after the others.
    fn burst(&mut self, library: &Library, bytes: i64, messages: i64, looks: bool) {
        let begin = self.now + 1_000_000;
        self.now = begin + 5_000_000;
        let (looked, posted) = (begin + 1_500_000, begin + 3_000_000);
        let operation = self.sends.len();
        self.sends.push(Operation::send("MPI_Isend", 1, (bytes, 1, 7)).waited());
        self.receives.push(Operation::receive("MPI_Recv", 1, (bytes, 0, 7)));
        if looks {
            self.receiver.push((None, call(looked, 20_000)));
        }
        let mut on_the_way = 0;
        for number in 0..messages {
            let is_kept = on_the_way + bytes <= library.together;
            let end = if bytes <= library.inline && is_kept {
                on_the_way += bytes;
                begin + 20_000 + number * 100
            } else if bytes <= library.eager && is_kept && looks {
                looked + 5_000
            } else {
                posted + 10_000 + number * 1_000
            };
            let (post, wait) = (begin + number * 1_000, begin + 10_000 + number * 10);
            let request = Request { post_begin_ns: post, post_ns: 500, ..Request::default() };
            let request = Request { mpi_ns: Some(0), outstanding_bytes: number * bytes, ..request };
            let wait = Call { completed: 1, ..call(wait, end - wait) };
            self.sender.push((operation, wait, request));
            self.receiver.push((Some(operation), call(posted + number * 1_000, 900)));
        }
    }

    fn write_sender(&self, file: &Fixture) {
        let waitall = file.insert(Operation::other_call("MPI_Waitall", 3));
        let add = |operation: &Operation<'static>| file.insert(operation.clone());
        let operations: Vec<i64> = self.sends.iter().map(add).collect();
        for (operation, wait, request) in &self.sender {
            let wait = file.insert(Call { operation_id: waitall, ..wait.clone() });
            let operation_id = operations[*operation];
            file.insert(Request { operation_id, completion_id: Some(wait), ..request.clone() });
        }
    }

    fn write_receiver(&self, file: &Fixture) {
        let look =
            Operation { communicator_id: Some(1), ..Operation::other_call("MPI_Comm_dup", 3) };
        let look = file.insert(look);
        let add = |operation: &Operation<'static>| file.insert(operation.clone());
        let operations: Vec<i64> = self.receives.iter().map(add).collect();
        for (operation, call) in &self.receiver {
            let operation_id = operation.map_or(look, |place| operations[place]);
            file.insert(Call { operation_id, ..call.clone() });
        }
    }

    fn write(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let rank = |number| Rank {
            epoch_ns: 0,
            end_ns: self.now + 10_000_000,
            summarized: 0,
            ..Rank::new(number)
        };
        rank(0).write(directory.path(), |file| self.write_sender(file));
        rank(1).write(directory.path(), |file| self.write_receiver(file));
        directory
    }
}

fn spread() -> Vec<i64> {
    (0..30).map(|step| (100.0 * 1.3f64.powi(step)) as i64).collect()
}

fn run(library: &Library, sizes: &[i64], messages: i64) -> Pair {
    let mut pair = Pair::default();
    for &bytes in sizes {
        for round in 0..6 {
            pair.burst(library, bytes, messages, round % 3 == 0);
        }
    }
    pair
}

fn only_path(directory: &tempfile::TempDir) -> Value {
    let found = json(directory.path(), &["thresholds", "."]);
    let paths = found["localities"].as_array().unwrap().clone();
    assert_eq!(paths.len(), 1, "{found}");
    assert_eq!(paths[0]["locality"], "node");
    paths[0].clone()
}

/// The bracket, which must hold `limit`.
fn bracket(threshold: &Value, limit: u64) -> (u64, u64) {
    let low = threshold["largest_eager_bytes"].as_u64().unwrap();
    let high = threshold["smallest_waiting_bytes"].as_u64().unwrap();
    assert!(low <= limit && limit < high, "{threshold}");
    (low, high)
}

#[test]
fn a_spread_of_sizes_gives_a_narrow_bracket() {
    let found = only_path(&run(&MPICH, &spread(), 1).write());
    let (low, high) = bracket(&found["rendezvous"], 8_000);
    assert!(high < 2 * low);
    assert_eq!(found["rendezvous"]["verdict"], "bracket");
    assert_eq!(found["rendezvous"]["contradictions"], 0);
    assert_eq!(found["rendezvous"]["try"], Value::Null);
    assert_eq!(found["post"]["verdict"], "always_eager");
    assert_eq!(found["cumulative"]["verdict"], "not_enough");
    assert_eq!(found["declared"], Value::Null);
}

#[test]
fn what_waits_for_the_receiver_is_told_from_what_waits_for_the_receive() {
    let found = only_path(&run(&OPEN_MPI, &spread(), 1).write());
    bracket(&found["needs_receiver_progress"], 256);
    let (low, high) = bracket(&found["rendezvous"], 4_000);
    assert!(high < 2 * low);
    assert_eq!(found["waits_for"], "receive");
}

#[test]
fn two_sizes_give_an_honest_wide_bracket() {
    let found = only_path(&run(&MPICH, &[1_000, 100_000], 1).write());
    assert_eq!(found["rendezvous"]["verdict"], "not_enough_sizes");
    assert_eq!(bracket(&found["rendezvous"], 8_000), (1_000, 100_000));
    let next = found["rendezvous"]["try"].as_str().unwrap();
    assert!(next.contains(" bytes "), "{next}");
}

#[test]
fn small_sizes_alone_show_no_limit() {
    let found = only_path(&run(&MPICH, &[100, 1_000, 4_000], 1).write());
    assert_eq!(found["rendezvous"]["verdict"], "always_eager");
    assert_eq!(found["rendezvous"]["largest_eager_bytes"], 4_000);
    let found = only_path(&run(&MPICH, &[100_000], 1).write());
    assert_eq!(found["rendezvous"]["verdict"], "always_waits");
    assert_eq!(found["rendezvous"]["smallest_waiting_bytes"], 100_000);
}

#[test]
fn a_limit_of_what_is_on_its_way_together_is_recovered() {
    let library = Library { inline: 60_000, eager: 60_000, together: 60_000 };
    let sizes: Vec<i64> = (1..=20).map(|step| step * 5_000).collect();
    let found = only_path(&run(&library, &sizes, 6).write());
    let cumulative = &found["cumulative"];
    assert_eq!(cumulative["verdict"], "cumulative");
    assert_eq!(cumulative["largest_eager_bytes"], 60_000);
    assert!(cumulative["smallest_blocking_bytes"].as_u64().unwrap() > 60_000);
    assert!(cumulative["contradictions_per_message"].as_u64().unwrap() > 100);
    // and it is no mess of the limit of single messages
    assert_eq!(bracket(&found["rendezvous"], 60_000), (60_000, 65_000));
    assert_eq!(found["rendezvous"]["contradictions"], 0);
}

#[test]
fn a_limit_for_each_message_is_told_from_one_for_all() {
    let found = only_path(&run(&MPICH, &spread(), 6).write());
    assert_eq!(found["cumulative"]["verdict"], "per_message");
    bracket(&found["rendezvous"], 8_000);
}

#[test]
fn what_mpi_declares_is_set_beside() {
    let declares = |limit: u64| {
        let directory = run(&OPEN_MPI, &spread(), 1).write();
        for rank in 0..2 {
            edit_rank(directory.path(), rank, |file| {
                let (name, value) = ("btl_vader_eager_limit", limit.to_string());
                file.insert(Cvar { name, value: &value });
            });
        }
        let found = only_path(&directory);
        (found["declared"]["bytes"].clone(), found["declared"]["agrees"].clone())
    };
    assert_eq!(declares(4_064), (4_064.into(), true.into()));
    assert_eq!(declares(65_536), (65_536.into(), false.into()));
}

#[test]
fn text_and_csv() {
    let directory = run(&MPICH, &spread(), 1).write();
    let text = answer(directory.path(), &["thresholds", "."]);
    assert!(text.contains("Sends between ranks of one node"), "{text}");
    assert!(text.contains("wait for"), "{text}");
    let csv = answer(directory.path(), &["thresholds", ".", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("locality,limit,verdict,largest_eager_bytes"), "{csv}");
    assert!(lines[1].starts_with("node,rendezvous,bracket,"), "{csv}");
    let of_receiver = json(directory.path(), &["thresholds", ".", "--rank", "1"]);
    assert_eq!(of_receiver["localities"].as_array().unwrap().len(), 0);
}

#[test]
fn a_run_that_shows_nothing() {
    let directory = small_run();
    let text = answer(directory.path(), &["thresholds", "."]);
    assert!(text.starts_with("Nothing shows"), "{text}");
    assert!(failure(directory.path(), &["thresholds", "nowhere"]).contains("nowhere"));
}
