//! `lapscope thresholds` on runs of two ranks whose MPI has a known limit.

mod fixture;

use std::fmt::Write;

use fixture::{answer, failure, json, Rank};
use serde_json::Value;

/// How an MPI treats a message.
struct Library {
    /// Up to this size a send needs nobody.
    inline: u64,
    /// Up to this size it needs the receiver inside MPI, beyond it the receive.
    eager: u64,
    /// Bytes that may be on their way to a receiver together.
    together: u64,
}

const MPICH: Library = Library { inline: 8_000, eager: 8_000, together: u64::MAX };
const OPEN_MPI: Library = Library { inline: 256, eager: 4_000, together: u64::MAX };

/// Rows of both ranks under way to being written.
#[derive(Default)]
struct Pair {
    sender: String,
    receiver: String,
    rows: u64,
    now: u64,
}

impl Pair {
    /// A burst of sends, each waited for in turn from 10 us on. The receiver posts 3 ms later, and has looked into MPI
    /// 1.5 ms after the first send if it is one that looks; the message it finds there it receives after the others.
    fn burst(&mut self, library: &Library, bytes: u64, messages: u64, looks: bool) {
        let begin = self.now + 1_000_000;
        self.now = begin + 5_000_000;
        let (looked, posted) = (begin + 1_500_000, begin + 3_000_000);
        let operation = self.rows + 100;
        self.sender += &format!(
            "INSERT INTO operation VALUES ({operation}, 0, 1, 1, 1, 'send', {bytes}, 1, 7, 1, 7, {bytes}, 'waited', NULL, NULL);\n"
        );
        self.receiver += &format!(
            "INSERT INTO operation VALUES ({operation}, 1, 9, 1, 1, 'recv', {bytes}, 0, 7, 0, 7, {bytes}, NULL, NULL, NULL);\n"
        );
        if looks {
            self.call(looked, 20_000);
        }
        let mut on_the_way = 0;
        for number in 0..messages {
            self.rows += 1;
            let id = self.rows;
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
            writeln!(
                self.sender,
                "INSERT INTO call VALUES ({id}, 3, 1, {wait}, {}, NULL, NULL, 1, NULL);
                 INSERT INTO request VALUES ({id}, {operation}, {id}, 1, {post}, 500, 0, {}, 0, NULL, NULL, NULL, NULL, NULL);",
                end - wait,
                number * bytes,
            )
            .unwrap();
            self.receive(operation, posted + number * 1_000);
        }
    }

    /// A probe of the receiver that found nothing that it wanted.
    fn call(&mut self, begin: u64, duration: u64) {
        self.rows += 1;
        let id = self.rows;
        writeln!(
            self.receiver,
            "INSERT INTO call VALUES ({id}, 8, 1, {begin}, {duration}, NULL, NULL, 0, NULL);"
        )
        .unwrap();
    }

    fn receive(&mut self, operation: u64, begin: u64) {
        let id = self.rows;
        writeln!(
            self.receiver,
            "INSERT INTO call VALUES ({id}, {operation}, 1, {begin}, 900, NULL, NULL, 0, NULL);"
        )
        .unwrap();
    }

    fn write(&self, more: &str) -> tempfile::TempDir {
        const CALLS: &str = "
            INSERT INTO call_name VALUES (9, 'MPI_Recv', 'POINT_TO_POINT', 'BLOCK');
            DELETE FROM operation WHERE id NOT IN (3, 5);
            INSERT INTO operation VALUES (8, RANK, 8, 3, 1, 'other', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL);";
        let directory = tempfile::tempdir().unwrap();
        let end_ns = (self.now + 10_000_000) as i64;
        for (number, rows) in [(0, &self.sender), (1, &self.receiver)] {
            let rank = Rank { epoch_ns: 0, end_ns, summarized: false, ..Rank::new(number) };
            let calls = CALLS.replace("RANK", &number.to_string());
            rank.write(directory.path(), &format!("BEGIN; {calls}\n{rows}\n{more}; COMMIT;"));
        }
        directory
    }
}

fn spread() -> Vec<u64> {
    (0..30).map(|step| (100.0 * 1.3f64.powi(step)) as u64).collect()
}

fn run(library: &Library, sizes: &[u64], messages: u64) -> Pair {
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
    let paths = found["paths"].as_array().unwrap().clone();
    assert_eq!(paths.len(), 1, "{found}");
    assert_eq!(paths[0]["path"], "node");
    paths[0].clone()
}

/// The bracket, which must hold `limit`.
fn bracket(threshold: &Value, limit: u64) -> (u64, u64) {
    let low = threshold["largest_buffered_bytes"].as_u64().unwrap();
    let high = threshold["smallest_waiting_bytes"].as_u64().unwrap();
    assert!(low <= limit && limit < high, "{threshold}");
    (low, high)
}

#[test]
fn a_spread_of_sizes_gives_a_narrow_bracket() {
    let found = only_path(&run(&MPICH, &spread(), 1).write(""));
    let (low, high) = bracket(&found["completion"], 8_000);
    assert!(high < 2 * low);
    assert_eq!(found["completion"]["verdict"], "bracket");
    assert_eq!(found["completion"]["contradictions"], 0);
    assert_eq!(found["completion"]["try"], Value::Null);
    assert_eq!(found["post"]["verdict"], "always_buffered");
    assert_eq!(found["cumulative"]["verdict"], "not_enough");
    assert_eq!(found["declared"], Value::Null);
}

#[test]
fn what_waits_for_the_receiver_is_told_from_what_waits_for_the_receive() {
    let found = only_path(&run(&OPEN_MPI, &spread(), 1).write(""));
    bracket(&found["attention"], 256);
    let (low, high) = bracket(&found["completion"], 4_000);
    assert!(high < 2 * low);
    assert_eq!(found["waits_for"], "receive");
}

#[test]
fn two_sizes_give_an_honest_wide_bracket() {
    let found = only_path(&run(&MPICH, &[1_000, 100_000], 1).write(""));
    assert_eq!(found["completion"]["verdict"], "not_enough_sizes");
    assert_eq!(bracket(&found["completion"], 8_000), (1_000, 100_000));
    let next = found["completion"]["try"].as_str().unwrap();
    assert!(next.contains(" bytes "), "{next}");
}

#[test]
fn small_sizes_alone_show_no_limit() {
    let found = only_path(&run(&MPICH, &[100, 1_000, 4_000], 1).write(""));
    assert_eq!(found["completion"]["verdict"], "always_buffered");
    assert_eq!(found["completion"]["largest_buffered_bytes"], 4_000);
    let found = only_path(&run(&MPICH, &[100_000], 1).write(""));
    assert_eq!(found["completion"]["verdict"], "always_waits");
    assert_eq!(found["completion"]["smallest_waiting_bytes"], 100_000);
}

#[test]
fn a_limit_of_what_is_on_its_way_together_is_recovered() {
    let library = Library { inline: 60_000, eager: 60_000, together: 60_000 };
    let sizes: Vec<u64> = (1..=20).map(|step| step * 5_000).collect();
    let found = only_path(&run(&library, &sizes, 6).write(""));
    let cumulative = &found["cumulative"];
    assert_eq!(cumulative["verdict"], "cumulative");
    assert_eq!(cumulative["largest_buffered_bytes"], 60_000);
    assert!(cumulative["smallest_blocking_bytes"].as_u64().unwrap() > 60_000);
    assert!(cumulative["contradictions_per_message"].as_u64().unwrap() > 100);
    // and it is no mess of the limit of single messages
    assert_eq!(bracket(&found["completion"], 60_000), (60_000, 65_000));
    assert_eq!(found["completion"]["contradictions"], 0);
}

#[test]
fn a_limit_for_each_message_is_told_from_one_for_all() {
    let found = only_path(&run(&MPICH, &spread(), 6).write(""));
    assert_eq!(found["cumulative"]["verdict"], "per_message");
    bracket(&found["completion"], 8_000);
}

#[test]
fn what_mpi_declares_is_set_beside() {
    let declares = |limit: u64| {
        let cvar =
            format!("INSERT INTO cvar SELECT rank, 'btl_vader_eager_limit', '{limit}' FROM rank");
        let found = only_path(&run(&OPEN_MPI, &spread(), 1).write(&cvar));
        (found["declared"]["bytes"].clone(), found["declared"]["agrees"].clone())
    };
    assert_eq!(declares(4_064), (4_064.into(), true.into()));
    assert_eq!(declares(65_536), (65_536.into(), false.into()));
}

#[test]
fn text_and_csv() {
    let directory = run(&MPICH, &spread(), 1).write("");
    let text = answer(directory.path(), &["thresholds", "."]);
    assert!(text.contains("Sends between ranks of one node"), "{text}");
    assert!(text.contains("wait for"), "{text}");
    let csv = answer(directory.path(), &["thresholds", ".", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("path,limit,verdict,largest_buffered_bytes"), "{csv}");
    assert!(lines[1].starts_with("node,completion,bracket,"), "{csv}");
    let of_receiver = json(directory.path(), &["thresholds", ".", "--rank", "1"]);
    assert_eq!(of_receiver["paths"].as_array().unwrap().len(), 0);
}

#[test]
fn a_run_that_tells_nothing() {
    let directory = fixture::small_run();
    let text = answer(directory.path(), &["thresholds", "."]);
    assert!(text.starts_with("Nothing tells"), "{text}");
    assert!(failure(directory.path(), &["thresholds", "nowhere"]).contains("nowhere"));
}
