//! Requests and calls of all kinds: what is counted, and what is told but not transferred.

mod fixture;

use fixture::{answer, json, Rank};
use serde_json::{json, Value};

/// Three activations of a persistent send of 1000 bytes; an MPI_Isendrecv of 100 bytes that receives 60; an MPI_Rput of
/// 4096; an MPI_Put of 512 in 2000 ns; a fence of 3000 ns; a split write of 8192, whose begin says so too; a probe that
/// finds 70 bytes; a part of 50 bytes of a partitioned request. The MPI_Finalize row is no part of the run time.
const ROWS: &str = "
DELETE FROM operation;
INSERT INTO call_name VALUES
  (20, 'MPI_Send_init', 'POINT_TO_POINT', 'INIT'), (21, 'MPI_Start', 'REQUEST', 'POST'),
  (22, 'MPI_Isendrecv', 'POINT_TO_POINT', 'POST'), (23, 'MPI_Rput', 'WINDOW', 'POST'), (24, 'MPI_Put', 'WINDOW', 'BLOCK'),
  (25, 'MPI_Win_fence', 'WINDOW', 'BLOCK'), (26, 'MPI_File_write_all_begin', 'FILE', 'BLOCK'),
  (27, 'MPI_File_write_all_end', 'FILE', 'BLOCK'), (28, 'MPI_Probe', 'POINT_TO_POINT', 'PROBE'),
  (29, 'MPI_Session_finalize', 'ENVIRONMENT', 'CONTROL'), (30, 'MPI_Pready', 'PARTITIONED', 'BLOCK');
INSERT INTO operation VALUES
  (1, 0, 20, 1, 1, 'send', 1000, 1, 7, 1, 7, 1000, NULL, NULL, NULL),
  (2, 0, 21, 2, NULL, 'send', 1000, 1, 7, 1, 7, 1000, 'waited', 1, NULL),
  (3, 0, 22, 3, 1, 'recv', 60, 1, 9, -1, 9, 80, NULL, NULL, NULL),
  (4, 0, 22, 3, 1, 'send', 100, 1, 8, 1, 8, 100, 'waited', NULL, 3),
  (5, 0, 23, 3, 1, 'rma', 4096, 1, NULL, 1, NULL, 4096, 'waited', NULL, NULL),
  (6, 0, 24, 4, 1, 'rma', 512, 1, NULL, 1, NULL, 512, NULL, NULL, NULL),
  (7, 0, 25, 4, 1, 'rma', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL),
  (8, 0, 26, 5, 1, 'io', 8192, NULL, NULL, NULL, NULL, 8192, NULL, NULL, NULL),
  (9, 0, 27, 5, 1, 'io', 8192, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL),
  (10, 0, 28, 6, 1, 'recv', 70, 1, 7, -1, -1, 0, NULL, NULL, NULL),
  (11, 0, 3, 6, NULL, 'other', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL),
  (12, 0, 29, 6, NULL, 'other', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL),
  (13, 0, 30, 6, 1, 'other', 50, NULL, NULL, NULL, NULL, 50, NULL, NULL, NULL);
INSERT INTO call VALUES
  (1, 1, 1, 2000, 100, NULL, NULL, 0, NULL), (2, 6, 1, 3000, 2000, NULL, NULL, 0, NULL), (3, 7, 1, 6000, 3000, NULL, NULL, 0, NULL),
  (4, 8, 1, 10000, 700, NULL, NULL, 0, NULL), (5, 9, 1, 12000, 300, NULL, NULL, 0, NULL), (6, 10, 1, 13000, 50, NULL, NULL, 0, NULL),
  (7, 11, 1, 30000, 5000, NULL, NULL, 5, NULL), (8, 13, 1, 40000, 10, NULL, NULL, 0, NULL), (9, 12, 1, 101000, 9000, NULL, NULL, 0, NULL);
INSERT INTO request VALUES
  (1, 2, 7, 1, 14000, 10, 0, 0, 0, NULL, NULL, NULL, NULL, NULL),
  (2, 2, 7, 1, 15000, 10, 0, 0, 0, NULL, NULL, NULL, NULL, NULL),
  (3, 2, 7, 1, 16000, 10, 0, 0, 0, NULL, NULL, NULL, NULL, NULL),
  (4, 4, 7, 1, 17000, 20, 0, 0, 0, NULL, NULL, NULL, NULL, NULL),
  (5, 5, 7, 1, 18000, 30, 0, 0, 0, NULL, NULL, NULL, NULL, NULL);
";

fn run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let rank = Rank { world_size: 1, summarized: false, ..Rank::new(0) };
    rank.write(directory.path(), ROWS);
    directory
}

#[test]
fn bytes_count_where_they_are_transferred() {
    let report = json(run().path(), &["report", "."]);
    let row = |kind: &str, requests: u64, calls: u64, bytes: u64| -> Value {
        json!({"kind": kind, "requests": requests, "calls": calls, "bytes": bytes})
    };
    let expected = [
        row("send", 4, 0, 3100),
        row("recv", 0, 0, 60),
        row("rma", 1, 2, 4608),
        row("io", 0, 1, 8192),
    ];
    assert_eq!(report["kinds"], json!(expected));
    let text = answer(run().path(), &["report", "."]);
    let line =
        "transferred: sent 3.03 KiB, received 60 B, one-sided 4.50 KiB, to and from files 8.00 KiB";
    assert!(text.contains(line), "{text}");
}

#[test]
fn time_is_in_one_place() {
    let report = json(run().path(), &["report", "."]);
    let totals = &report["totals"];
    let keys = [
        "posting_ns",
        "waiting_ns",
        "blocking_ns",
        "collective_ns",
        "rma_ns",
        "io_ns",
        "poll_ns",
        "other_ns",
    ];
    let times: Vec<i64> = keys.iter().map(|key| totals[key].as_i64().unwrap()).collect();
    assert_eq!(times, [80, 5000, 50, 0, 5000, 1000, 0, 110]);
    assert_eq!(totals["mpi_ns"], times.iter().sum::<i64>());
    let kinds: Vec<&str> = report["size_classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["kind"].as_str().unwrap())
        .collect();
    // 100 and 1000 bytes; 512 and 4096; 8192
    assert_eq!(kinds, ["point_to_point", "point_to_point", "rma", "rma", "io"]);
}

#[test]
fn requests_say_what_made_them_and_what_they_receive() {
    let run = run();
    let found = json(run.path(), &["requests", ".", "--call", "send_init"]);
    assert_eq!(found["found"], 3);
    assert_eq!(
        (&found["requests"][0]["call"], &found["requests"][0]["init_call"]),
        (&json!("MPI_Start"), &json!("MPI_Send_init"))
    );
    let both = &json(run.path(), &["requests", ".", "--call", "isendrecv"])["requests"][0];
    assert_eq!(
        (&both["receive_bytes"], &both["receive_peer"], &both["receive_tag"]),
        (&json!(60), &json!(1), &json!(9))
    );
    assert_eq!(json(run.path(), &["requests", ".", "--kind", "rma"])["found"], 1);
    let text = answer(run.path(), &["requests", "."]);
    assert!(
        text.contains("MPI_Start of MPI_Send_init") && text.contains("receives 60 B from 1"),
        "{text}"
    );
}
