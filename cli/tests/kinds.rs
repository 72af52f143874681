//! Requests and calls of all kinds: what is counted, and what is told but not transferred.

use crate::fixture::{answer, json};
use lapscope_fixture::tables::{Call, Operation, Rank, Request};
use lapscope_fixture::{call_id, Fixture};
use serde_json::{json, Value};

fn message(file: &Fixture) -> [i64; 2] {
    let init = file.insert(Operation::send("MPI_Send_init", 1, (1_000, 1, 7)));
    let start = Operation::send("MPI_Start", 2, (1_000, 1, 7)).waited();
    let init_operation_id = Some(init);
    [init, file.insert(Operation { communicator_id: None, init_operation_id, ..start })]
}

fn both_ways(file: &Fixture) -> i64 {
    let received = Operation::receive("MPI_Isendrecv", 3, (60, 1, 9));
    let received = file.insert(Operation { posted_peer: Some(-1), posted_bytes: 80, ..received });
    let sent = Operation::send("MPI_Isendrecv", 3, (100, 1, 8)).waited();
    file.insert(Operation { receive_operation_id: Some(received), ..sent })
}

fn one_sided(name: &str, path: i64, bytes: i64, peer: Option<i64>) -> Operation<'static> {
    let access = Operation::collective(name, path);
    Operation { kind: "rma", bytes, peer, posted_peer: peer, posted_bytes: bytes, ..access }
}

/// Three activations of a persistent send of 1000 bytes; an MPI_Isendrecv of 100 bytes that receives 60; an MPI_Rput of
/// 4096; an MPI_Put of 512 in 2000 ns; a fence of 3000 ns; a split write of 8192, whose begin says so too; a probe that
/// finds 70 bytes; a part of 50 bytes of a partitioned request. The MPI_Finalize row is no part of the run time.
fn rows(file: &Fixture) {
    let [init, start] = message(file);
    let write = Operation {
        kind: "io",
        bytes: 8_192,
        ..Operation::collective("MPI_File_write_all_end", 5)
    };
    let begin = Operation {
        call_id: call_id("MPI_File_write_all_begin"),
        posted_bytes: 8_192,
        ..write.clone()
    };
    let probe = Operation {
        posted_peer: Some(-1),
        posted_tag: Some(-1),
        posted_bytes: 0,
        ..Operation::receive("MPI_Probe", 6, (70, 1, 7))
    };
    let part = Operation {
        communicator_id: Some(1),
        bytes: 50,
        posted_bytes: 50,
        ..Operation::other_call("MPI_Pready", 6)
    };
    let both = both_ways(file);
    let rput = file.insert(one_sided("MPI_Rput", 3, 4_096, Some(1)).waited());
    let waitall = file.insert(Operation::other_call("MPI_Waitall", 6));
    let mut completion_id = None;
    for (operation_id, begin_ns, duration_ns, completed) in [
        (init, 2_000, 100, 0),
        (file.insert(one_sided("MPI_Put", 4, 512, Some(1))), 3_000, 2_000, 0),
        (file.insert(one_sided("MPI_Win_fence", 4, 0, None)), 6_000, 3_000, 0),
        (file.insert(begin), 10_000, 700, 0),
        (file.insert(write), 12_000, 300, 0),
        (file.insert(probe), 13_000, 50, 0),
        (waitall, 30_000, 5_000, 5),
        (file.insert(part), 40_000, 10, 0),
        (file.insert(Operation::other_call("MPI_Session_finalize", 6)), 101_000, 9_000, 0),
    ] {
        let duration_ns = Some(duration_ns);
        let id =
            file.insert(Call { operation_id, begin_ns, duration_ns, completed, ..Call::default() });
        completion_id = completion_id.or((operation_id == waitall).then_some(id));
    }
    for (operation_id, post_begin_ns, post_ns) in [
        (start, 14_000, 10),
        (start, 15_000, 10),
        (start, 16_000, 10),
        (both, 17_000, 20),
        (rput, 18_000, 30),
    ] {
        let posted = Request { operation_id, post_begin_ns, post_ns, ..Request::default() };
        file.insert(Request { completion_id, mpi_ns: Some(0), ..posted });
    }
}

fn run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let rank = Rank { world_size: 1, summarized: 0, ..Rank::new(0) };
    rank.write(directory.path(), rows);
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
        "exposed_ns",
        "blocking_ns",
        "collective_ns",
        "rma_ns",
        "io_ns",
        "unsuccessful_test_ns",
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
