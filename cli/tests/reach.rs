//! `lapscope reach`: runs that are recorded for it, and what is said of what was watched.

use std::process::Command;

use crate::fixture::{answer, command, failure, json, text};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::library::library;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Rank, Watch, Watcher};
use lapscope_fixture::{edit_rank, full};

fn recording(directory: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = command(directory, arguments);
    command.env("LAPSCOPE_LIBRARY", library());
    command
}

#[test]
fn a_program_is_told_to_watch_and_its_exit_code_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let script = "echo $LAPSCOPE_REACH $LAPSCOPE_REACH_SHARE $LAPSCOPE_REACH_MIN_BYTES $LAPSCOPE_REACH_BUDGET; exit 7";
    let options = ["--share", "50", "--min-bytes", "4k", "--budget", "10"];
    let line = ["--", "sh", "-c", script];
    let output =
        recording(directory.path(), &[&["reach"], &options[..], &line].concat()).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "on 50 4096 10\n"));
    assert!(text(&output.stderr).contains("nothing was recorded"), "{}", text(&output.stderr));
    let output = recording(directory.path(), &[&["reach"], &line[..]].concat()).output().unwrap();
    assert_eq!(text(&output.stdout), "on\n", "what is not asked for has its own default");
}

#[test]
fn what_was_recorded_is_printed_behind_the_output_of_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    full::write(source.path());
    let script =
        "echo from the program; mkdir -p $LAPSCOPE_DIR; cp $0/rank-?.db $LAPSCOPE_DIR; exit 3";
    let from = source.path().to_str().unwrap();
    let line = ["reach", "--dir", "run", "--", "sh", "-c", script, from];
    let output = recording(directory.path(), &line).output().unwrap();
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(printed.starts_with("from the program\nlapscope reach  run\n"), "{printed}");
    assert!(!text(&output.stderr).contains("next: lapscope report"), "{}", text(&output.stderr));
    assert_eq!(answer(directory.path(), &["reach", "run"]), printed["from the program\n".len()..]);
}

#[test]
fn options_of_a_recording_need_one() {
    let run = small_run();
    for arguments in [
        &["reach", "--share", "50"][..],
        &["reach", "--budget", "0", "--", "true"],
        &["reach", "--min-bytes", "much", "--", "true"],
        &["reach", ".", "--", "true"],
    ] {
        let code = command(run.path(), arguments).output().unwrap().status.code();
        assert_eq!(code, Some(2), "{arguments:?}");
    }
}

#[test]
fn a_run_that_watched_nothing_says_how_to_get_one() {
    let run = small_run();
    let said = answer(run.path(), &["reach", "."]);
    assert!(said.contains("LAPSCOPE_REACH was off") && said.contains("lapscope reach -- mpirun"));
    let found = json(run.path(), &["reach", "."]);
    assert_eq!(found["problems"][0]["kind"], "not_watched");
    assert_eq!(found["watching"]["ranks"], 0);
    assert!(failure(run.path(), &["reach", ".", "--rank", "7"]).contains("has ranks 0-1"));
}

#[test]
fn what_stopped_ranks_is_said_with_the_ranks() {
    let run = tempfile::tempdir().unwrap();
    for rank in [0, 1] {
        Rank::new(rank).write(run.path(), |file| {
            small::operations(file);
            file.insert(Watcher { problem: Some("it is forbidden"), ..Watcher::default() });
        });
    }
    let found = json(run.path(), &["reach", "."]);
    let of = |at: usize| found["problems"][at].clone();
    assert_eq!(of(0)["message"], "ranks 0-1 watched no buffer: it is forbidden");
    assert_eq!(of(0)["ranks"], serde_json::json!([0, 1]));
}

#[test]
fn what_was_watched_and_what_it_cost_stand_in_front() {
    let run = tempfile::tempdir().unwrap();
    full::write(run.path());
    let text = answer(run.path(), &["reach", "."]);
    for line in [
        "watched: 12 words of 4 buffers, on 2 ranks",
        "cost: 84.0 µs, 56.0 % of the run time; 8.00 µs an access to a watched word",
        "buffers not watched: 18 (not drawn: LAPSCOPE_REACH_SHARE)",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    json(run.path(), &["reach", "."]);
}

/// Whatever is known of them, sites have the same columns; a run without any has the head alone.
#[test]
fn sites_are_rows() {
    let run = tempfile::tempdir().unwrap();
    full::write(run.path());
    let csv = answer(run.path(), &["reach", ".", "--format", "csv"]);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let cells = |name: &str| -> Vec<&str> {
        let at = rows[0].iter().position(|known| *known == name).unwrap();
        rows[1..].iter().map(|row| row[at]).collect()
    };
    assert_eq!(cells("call"), ["MPI_Isend", "MPI_Irecv"]);
    assert_eq!(cells("side"), ["send", "receive"]);
    assert_eq!(cells("buffers"), ["2", "2"]);
    assert_eq!(cells("toucher"), ["program", "program"]);
    assert_eq!(cells("all_low_ns"), ["", ""], "too few buffers");
    let none = answer(small_run().path(), &["reach", ".", "--format", "csv"]);
    assert_eq!(none.trim_end(), rows[0].join(","));
    let table = answer(run.path(), &["reach", ".", "--format", "markdown"]);
    assert_eq!(table.lines().count(), 2 + 2);
}

/// The greatest values that a file may hold, and words that lie where no buffer is, of as many buffers as are needed to say
/// something of them.
#[test]
fn values_at_the_ends_of_what_is_believed_are_summed() {
    const LONGEST: i64 = lapscope_data::model::bounds::LONGEST_NS;
    const MOST_BYTES: i64 = lapscope_data::model::bounds::MOST_BYTES;
    for change in [
        format!("buffer_bytes = {MOST_BYTES}, offset = {MOST_BYTES} - id"),
        format!("away_ns = {LONGEST}, away_mpi_ns = id"),
        format!("away_ns = id % 2 * {LONGEST}, away_mpi_ns = (id + 1) % 2 * {LONGEST}"),
        format!("begin_ns = {LONGEST} - id, edge_begin_ns = {LONGEST}"),
        format!("buffer_bytes = 0, offset = id * 1000, hits = {}", 1_i64 << 48),
        "result = 'often'".to_owned(),
        "result = 'untouched', toucher = NULL, call_path_id = NULL, let_go = 'late'".to_owned(),
        "toucher = NULL, call_path_id = NULL".to_owned(),
        "toucher = 'mpi', call_path_id = 2, on_stack = 1, sparse = 1".to_owned(),
        "copy_path_id = id % 8 + 1".to_owned(),
        "operation_id = 3".to_owned(),
    ] {
        let run = tempfile::tempdir().unwrap();
        full::write(run.path());
        edit_rank(run.path(), 0, |file| {
            for number in 0..100 {
                let (place, at) = ((8 * number, 1_000), 2_500 + number);
                file.insert(Watch::send(small::ISEND, at, place, 10 * number));
                file.insert(Watch::receive(small::IRECV, (at, 30_001), place, 10 * number));
            }
            file.change(&format!("UPDATE watch SET {change}"));
        });
        for arguments in [&["reach", "."], &["report", "."]] {
            for format in ["text", "json"] {
                command(run.path(), &[&arguments[..], &["--format", format]].concat())
                    .assert()
                    .success();
            }
        }
    }
}

/// Rank 0 waits 100 us for each of 12 receives, and needs their data 200 us later, from the first word to the last, 100 ns a word.
fn movable(directory: &std::path::Path) {
    Rank { end_ns: 14_000_000, ..Rank::plain(0) }.write(directory, |file| {
        let mut rows = Rows::default();
        for begin in (1..=12).map(|step| step * 1_000_000) {
            let receive = (("MPI_Irecv", "recv", 8_000, 1, 7), begin, 500, 0);
            rows.complete("MPI_Waitall", begin + 1_000, 100_000, &[receive]);
            for offset in [0, 1_600, 4_800, 7_992] {
                let (edge, away) = (begin + 101_000, 200_000 + offset / 8 * 100);
                file.insert(Watch::receive(2, (begin, edge), (offset, 8_000), away));
            }
        }
        rows.write(file);
        file.insert(Watcher { hit_ns: Some(1), ..Watcher::default() });
    });
}

#[test]
fn posts_and_waits_are_told_with_the_lines_that_touch_their_data() {
    let run = tempfile::tempdir().unwrap();
    movable(run.path());
    let text = answer(run.path(), &["reach", "."]).split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "Posts could be earlier or waits later: that could save at most 1.20 ms of the 1.20 ms that were exposed (8.6 % of the \
         run time).",
        "8.6 % 1.20 ms MPI_Irecv app+0x200, waited for in MPI_Waitall app+0x300: the wait could be 200 µs later for all of the \
         buffer,",
        "its data are first touched at app+0x700. That could save at most 1.20 ms.",
        "7.81 KiB · 12 buffers on 1 rank · used from first to last · 100 ns a word",
    ] {
        assert!(text.contains(said), "{said} in\n{text}");
    }
    let none = answer(run.path(), &["reach", "--top", "1", "."]);
    assert!(none.contains("MPI_Irecv"), "{none}");
    let report = answer(run.path(), &["report", "."]);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let advice = "Move MPI_Waitall app+0x300 to before app+0x700";
    assert!(report.contains(advice) && report.contains("POSTS AND WAITS"), "{report}");
    let found = json(run.path(), &["report", "."]);
    assert_eq!(found["advice"][0]["cure"], "wait_later");
    assert_eq!(found["reach"]["sites"][0]["all"]["estimate"], 200_000.0);
}
