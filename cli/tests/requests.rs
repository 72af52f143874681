//! Which requests are listed, and in which order.

use std::process::Stdio;

use crate::fixture::{answer, json};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::small::{self, run as small_run, PENDING};
use lapscope_fixture::tables::{Rank, Request};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

fn ids(arguments: &[&str]) -> Vec<i64> {
    let run = small_run();
    let found = json(run.path(), &[&["requests", "."], arguments].concat());
    found["requests"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

#[test]
fn orders() {
    assert_eq!(ids(&["--sort", "overlap-window"]), [1, 2, 3]);
    assert_eq!(ids(&["--sort", "unsuccessful-tests", "--top", "1"]), [2]);
    assert_eq!(ids(&["--sort", "post", "--top", "2"]), [1, 2]);
    assert_eq!(ids(&["--sort", "begin"]), [1, 2, 3]);
    assert_eq!(ids(&["--top", "0"]), [1, 2, 3]);
}

/// Ranks have epochs of their own; from the return of MPI_Init they can be put in one order, as `pending` does.
#[test]
fn moments_count_from_the_return_of_mpi_init() {
    let run = tempfile::tempdir().unwrap();
    Rank::new(0).write(run.path(), small::rank_0);
    // 1.0 us after its MPI_Init at 5 us: before all of rank 0, whose first is posted 1.0 us after its own at 1 us, by 1 ns.
    Rank { init_end_ns: 5_000, ..Rank::new(1) }.write(run.path(), |file| {
        small::operations(file);
        let (post_begin_ns, post_ns) = (5_999, 500);
        let pending =
            Request { operation_id: PENDING, post_begin_ns, post_ns, ..Request::default() };
        file.insert(Request { mpi_ns: Some(0), ..pending });
    });
    let found = json(run.path(), &["requests", ".", "--sort", "begin"]);
    let first = &found["requests"][0];
    assert_eq!((&first["rank"], &first["post_begin_after_init_ns"]), (&1.into(), &999.into()));
    let pending = json(run.path(), &["hang", "--pending", "."]);
    let pending = &pending["pending"][0];
    assert_eq!(pending["begin_after_init_ns"], first["post_begin_after_init_ns"]);
    assert_eq!(pending["begin_ns"], first["post_begin_ns"]);
    let text = answer(run.path(), &["requests", ".", "--sort", "begin", "--top", "1"]);
    assert!(text.contains("since MPI_Init returned") && text.contains("0.000001 s"), "{text}");
    let csv = answer(run.path(), &["requests", ".", "--format", "csv"]);
    assert!(csv.lines().next().unwrap().contains(",post_begin_after_init_ns,"), "{csv}");
}

#[test]
fn filters() {
    assert_eq!(ids(&["--call", "irecv"]), [3]);
    assert_eq!(ids(&["--kind", "send"]), [1, 2]);
    assert_eq!(ids(&["--min-bytes", "1001"]), [] as [i64; 0]);
    assert_eq!(ids(&["--rank", "1"]), [] as [i64; 0]);
    assert_eq!(ids(&["--peer", "1", "--tag", "7", "--ended", "waited"]), [1, 2, 3]);
    assert_eq!(ids(&["--source", "app+0x200"]), [3]);
    assert_eq!(ids(&["--source", "app+0x200", "--top", "0"]), [3]);
}

/// What a filter names and nobody has is told, with what was meant.
#[test]
fn filters_that_match_nothing() {
    let run = small_run();
    let failure = |arguments: &[&str]| crate::fixture::failure(run.path(), arguments);
    for command in ["sites", "requests"] {
        let said = failure(&[command, ".", "--call", "MPI_Isned"]);
        assert!(
            said.contains(
                "--call MPI_Isned: there is no such call in MPI; did you mean MPI_Isend?"
            ),
            "{said}"
        );
        let said = crate::fixture::remarks(run.path(), &[command, ".", "--call", "ibsend"]);
        assert!(said.contains("this run has no such call"), "{said}");
    }
    for command in ["report", "sites", "requests", "overlap", "thresholds"] {
        let said = failure(&[command, ".", "--rank", "2"]);
        assert_eq!(said, "lapscope: --ranks 2: . has ranks 0-1\n", "{command}");
    }
    // a list of them, and the name that the option had
    let of =
        |chosen: &[&str]| json(run.path(), &[&["report", "."], chosen].concat())["totals"].clone();
    assert_eq!(of(&["--ranks", "0-1"]), of(&[]));
    assert_eq!(of(&["--rank", "1"]), of(&["--ranks=1"]));
    let said = failure(&["requests", ".", "--peer", "7"]);
    assert!(said.contains("--peer 7: . has ranks 0-1"), "{said}");
}

#[test]
fn sizes_have_units() {
    assert_eq!(ids(&["--max-bytes", "1k"]), [1, 2, 3]);
    assert_eq!(ids(&["--min-bytes", "1k"]), [] as [i64; 0]);
    let run = small_run();
    let refused =
        crate::fixture::command(run.path(), &["requests", ".", "--min-bytes", "64x"]).assert();
    refused.code(2).stderr(contains("64x").and(contains("as 64k or 2M")));
}

#[test]
fn a_request_in_full() {
    let run = small_run();
    let found = json(run.path(), &["requests", ".", "--sort", "unsuccessful-tests", "--top", "1"]);
    assert_eq!(found["found"], 3);
    let request = &found["requests"][0];
    let expected = serde_json::json!({
        "rank": 0, "id": 2, "thread": 0, "call": "MPI_Isend", "init_call": null, "kind": "send", "bytes": 1000,
        "peer": 1, "tag": 7, "receive_bytes": null, "receive_peer": null, "receive_tag": null,
        "communicator": "MPI_COMM_WORLD", "ended": "waited", "post_begin_ns": 2500, "post_begin_after_init_ns": 1500, "post_ns": 300,
        "overlap_window_ns": 17200, "mpi_ns": 300, "compute_ns": 16900, "completion_call": "MPI_Waitall",
        "completion_begin_ns": 20000, "completion_begin_after_init_ns": 19000, "completion_ns": 10001, "completed_together": 3, "outstanding_bytes": 1000,
        "unsuccessful_tests": 2, "first_unsuccessful_test_ns": 100, "last_unsuccessful_test_ns": 200, "last_incomplete_ns": 200, "first_complete_ns": null,
        "posted_peer": 1, "posted_tag": 7, "posted_bytes": 1000, "injection_arm": null, "memory": null, "counters": null, "site": "app+0x100",
        "completion_site": "app+0x300",
    });
    assert_eq!(request, &expected);
}

#[test]
fn csv_has_one_line_a_request() {
    let run = small_run();
    let text = answer(run.path(), &["requests", ".", "--top", "0", "--format", "csv"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("rank,id,thread,call,"));
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()));
}

/// `lapscope requests | head` is no error.
#[test]
fn a_reader_that_went_away() {
    let run = small_run();
    for command in ["report", "sites", "requests", "pending"] {
        let mut child = crate::fixture::command(run.path(), &[command, "."])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !error.contains("ipe"), "{command}: {error}");
    }
}

/// Rank 1 was killed; 15 µs behind the last thing that it recorded it was seen to be gone.
#[test]
fn the_end_of_a_killed_rank_is_known_between_bounds() {
    let run = tempfile::tempdir().unwrap();
    lapscope_fixture::full::write(run.path());
    let text = answer(run.path(), &["hang", "--pending", "."]);
    assert!(
        text.contains("rank 1 on node1 was killed between 50.0 and 65.0 µs after MPI_Init; "),
        "{text}"
    );
    let inside = "MPI_Waitall, entered 30.0 µs after MPI_Init and not left, in it for at most";
    assert!(text.replace("\n          ", " ").contains(inside), "{text}");
    let items = json(run.path(), &["hang", "--pending", "."])["pending"].clone();
    let bounds = |at: usize| {
        (items[at]["last_after_init_ns"].as_i64(), items[at]["gone_after_init_ns"].as_i64())
    };
    assert_eq!((bounds(0), bounds(1)), ((Some(50_000), Some(65_000)), bounds(0)));
}
