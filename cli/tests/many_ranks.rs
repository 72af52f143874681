//! Screens of many ranks are as long as those of few: whole outputs, and how long they are.

use crate::fixture::{answer, json, lapscope};
use lapscope_fixture::tables::{
    Call, CallPath, Communicator, Frame, Module, Operation, Rank, Request, Thread,
};
use lapscope_fixture::{write_file, Fixture};
use serde_json::json;

const PER_NODE: i64 = 64;
const MS: i64 = 1_000_000;
const RUN: i64 = 1_000 * MS;
const STEPS: i64 = 4;
/// Computes longer.
const SLOW: i64 = 25;
/// Sends more.
const LOUD: i64 = 7;

/// How the ranks of a run end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Finalize,
    /// All but the slow one in a collective.
    Stuck,
}

/// A ring in which everyone sends to the next and waits for that, and then for all others.
fn run(ranks: i64, end: End) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for node in 0..(ranks + PER_NODE - 1) / PER_NODE {
        write_file(&directory.path().join(format!("rank-{node}.db")), |file| {
            for rank in (node * PER_NODE..ranks).take(PER_NODE as usize) {
                write_rank(file, (rank, rank - node * PER_NODE), ranks, end);
            }
        });
    }
    directory
}

/// `place`: how many ranks the file has before it.
fn write_rank(file: &Fixture, (rank, place): (i64, i64), ranks: i64, end: End) {
    define(file, (rank, place), ranks, end);
    let add = |operation: Operation<'_>| {
        let communicator_id = operation.communicator_id.and(Some(place + 1));
        let call_path_id = operation.call_path_id.map(|path| 4 * place + path);
        file.insert(Operation { communicator_id, call_path_id, ..operation })
    };
    let (before, after) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
    let bytes = |rank: i64| if rank == LOUD { 64 << 10 } else { 16 << 10 };
    let isend = add(Operation::send("MPI_Isend", 1, (bytes(rank), after, 0)).waited());
    let irecv = add(Operation::receive("MPI_Irecv", 2, (bytes(before), before, 0)).waited());
    let waitall = add(Operation::other_call("MPI_Waitall", 3));
    let allreduce = add(Operation::collective("MPI_Allreduce", 4));
    // a little later here than there, and one much later
    let late = rank * 37 % 8 * MS / 4 + if rank == SLOW { 40 * MS } else { 0 };
    let thread_id = place + 1;
    let call = |operation_id, begin_ns, duration_ns, completed| {
        let call = Call { operation_id, thread_id, begin_ns, ..Call::default() };
        file.insert(Call { duration_ns, completed, ..call })
    };
    for step in 0..if end == End::Stuck { 1 } else { STEPS } {
        let begin = step * RUN / STEPS;
        let (wait, reduce) = (begin + 130 * MS + late, begin + 140 * MS + late);
        let waited = Some(call(waitall, wait, Some(5 * MS), 2));
        for (number, operation_id) in [(0, irecv), (1, isend)] {
            file.insert(Request {
                operation_id,
                completion_id: waited,
                thread_id,
                post_begin_ns: begin + number * 20_000,
                post_ns: 10_000,
                mpi_ns: Some(0),
                ..Request::default()
            });
        }
        match end {
            End::Stuck if rank == SLOW => {}
            End::Stuck => _ = call(allreduce, reduce, None, 0),
            End::Finalize => _ = call(allreduce, reduce, Some(begin + 200 * MS - reduce), 0),
        }
    }
}

fn define(file: &Fixture, (rank, place): (i64, i64), ranks: i64, end: End) {
    let host = format!("n{:03}", 1 + rank / PER_NODE);
    let (end_ns, ended) = match end {
        End::Finalize => (RUN, "finalize"),
        End::Stuck => (RUN / STEPS, "killed"),
    };
    let clock = "monotonic";
    file.insert(Rank { world_size: ranks, host: &host, clock, end_ns, ended, ..Rank::plain(rank) });
    let id = Some(place + 1);
    file.insert(Communicator { id, size: ranks, comm_rank: rank, ..Communicator::default() });
    file.insert(Module { id, path: "/nowhere/app", ..Module::default() });
    for number in 1..=4 {
        let (call_path_id, address) = (4 * place + number, 0x100 * number);
        file.insert(CallPath { id: Some(call_path_id), ..CallPath::default() });
        file.insert(Frame { call_path_id, module_id: id, address, ..Frame::default() });
    }
    file.insert(Thread { id, ..Thread::default() });
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

#[test]
fn of_one_more_than_has_a_line_each() {
    let run = run(33, End::Finalize);
    for command in ["report", "overlap"] {
        insta::assert_snapshot!(format!("{command}_33"), answer(run.path(), &[command, "."]));
    }
}

#[test]
fn of_two_nodes() {
    let run = run(128, End::Finalize);
    let report = answer(run.path(), &["report", "."]);
    insta::assert_snapshot!("ranks_128", answer(run.path(), &["overlap", ".", "--by", "rank"]));
    let listed = answer(run.path(), &["report", ".", "--each-rank=0-1,25"]);
    assert!(listed.contains("\n    25  n001"), "{listed}");
    assert!((3..=7).contains(&(lines(&listed) - lines(&report))), "{listed}");
    let by_rank = answer(run.path(), &["overlap", ".", "--by=rank", "--each-rank"]);
    assert_eq!(by_rank.matches("rank 127 ").count(), 1, "{by_rank}");
    insta::assert_snapshot!("report_128", report);
    let refused = lapscope(run.path(), &["report", ".", "--each-rank=3-1"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("a stretch of ranks is as 0-15"));
}

#[test]
fn of_a_thousand_as_long_as_of_few() {
    let (run, few) = (run(1_000, End::Finalize), run(32, End::Finalize));
    let report = answer(run.path(), &["report", "."]);
    let (many, few) = (lines(&report), lines(&answer(few.path(), &["report", "."])));
    // the section on ranks, and a line where two more are named
    assert!(many <= few + 24, "{many} lines, {few} of 32 ranks: {report}");
    insta::assert_snapshot!("report_1000", report);
}

#[test]
fn groups_as_json() {
    let run = run(128, End::Finalize);
    let report = json(run.path(), &["report", "."]);
    assert_eq!(report["ranks"].as_array().unwrap().len(), 128, "machines get a row a rank");
    let alike = &report["alike"];
    assert_eq!((&alike["verdict"], &alike["hosts"]), (&json!("groups"), &json!(2)));
    assert_eq!((&alike["ranks"], &alike["groups"][0]["count"]), (&json!(128), &json!(125)));
    let slow = &alike["groups"][1];
    assert_eq!(slow["ranges"], json!([[SLOW, SLOW]]));
    assert_eq!(slow["differences"][0]["measure"], "outside_ns");
    let loud: Vec<_> = (2..4).map(|group| &alike["groups"][group]["ranges"]).collect();
    assert_eq!(loud, [&json!([[LOUD, LOUD]]), &json!([[LOUD + 1, LOUD + 1]])]);
    let outside = &alike["distributions"][0];
    assert_eq!((&outside["measure"], &outside["max_rank"]), (&json!("outside_ns"), &json!(SLOW)));
    assert_eq!(report["ranks"][LOUD as usize]["sent_bytes"], STEPS * (64 << 10));
    json(run.path(), &["overlap", "."]);
}

#[test]
fn who_is_where_when_all_are_stuck() {
    let run = run(10_000, End::Stuck);
    insta::assert_snapshot!("pending_10000", answer(run.path(), &["hang", "--pending", "."]));
    let one = answer(run.path(), &["hang", "--pending", ".", "--each-rank=3"]);
    assert!(one.contains("\nrank 3 on n001 was killed"), "{one}");
}

#[test]
fn the_dead_are_told_by_place() {
    let run = run(40, End::Stuck);
    let pending = json(run.path(), &["hang", "--pending", "."]);
    assert_eq!(
        (&pending["outside"][0]["rank"], &pending["places"][0]["count"]),
        (&json!(SLOW), &json!(39))
    );
    let report = json(run.path(), &["report", "."]);
    let problems = report["problems"].as_array().unwrap().iter();
    let died = problems.filter(|problem| problem["kind"] == "died");
    let died: Vec<&str> = died.map(|problem| problem["message"].as_str().unwrap()).collect();
    assert_eq!(died.len(), 2, "{died:?}");
    assert!(
        died[0].starts_with("all ranks but 25 were killed, inside MPI_Allreduce at app+0x400"),
        "{died:?}"
    );
    assert!(died[1].starts_with("rank 25 was killed outside MPI"), "{died:?}");
    let text = answer(run.path(), &["report", "."]);
    assert!(text.contains("\nEnded early    Ranks died before MPI_Finalize."), "{text}");
    assert!(
        text.contains("lapscope hang .\n") && !text.contains("cannot make this run much"),
        "{text}"
    );
    let overlap = answer(run.path(), &["overlap", "."]);
    assert!(
        overlap.contains("! all 40 ranks were killed (last recorded 0.250 s after MPI_Init)"),
        "who was in which call is not read there: {overlap}"
    );
}

/// A job that was killed while all but one were in a collective.
#[test]
fn who_the_dead_waited_for_is_named() {
    let run = run(40, End::Stuck);
    let page = run.path().join("hang.html");
    let hang = json(run.path(), &["hang", ".", "--html", page.to_str().unwrap()]);
    let verdict = &hang["verdict"];
    assert_eq!((&verdict["kind"], &verdict["ranks"]), (&json!("dead"), &json!([SLOW])));
    assert_eq!(verdict["certain"], false, "what came last is not recorded");
    assert_eq!(
        (&hang["places"][0]["ranks"], &hang["places"][1]["count"]),
        (&json!([SLOW]), &json!(39))
    );
    let text = answer(run.path(), &["hang", ".", "--each-rank=3"]);
    let sentence = "Rank 25 was outside of MPI when it was killed; the others waited for it";
    assert!(text.contains(&format!("VERDICT  perhaps: a rank is dead\n  {sentence}")), "{text}");
    assert!(text.contains("\n  rank 3 on n001, process"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Content-Security-Policy") && page.contains(sentence), "{page}");
}

/// A line a file that cannot be read would be ten thousand lines.
#[test]
fn many_damaged_files_are_told_in_short() {
    let run = run(33, End::Finalize);
    for number in 0..100 {
        std::fs::write(run.path().join(format!("rank-{}.db", 1_000 + number)), "no database")
            .unwrap();
    }
    let report = answer(run.path(), &["report", "."]);
    assert_eq!(report.matches("! not read").count(), 4, "{report}");
    assert!(report.contains("! and 96 more files that could not be read"), "{report}");
    let all = json(run.path(), &["report", "."]);
    let problems = all["problems"].as_array().unwrap().iter();
    assert_eq!(problems.filter(|it| it["kind"] == "damaged_file").count(), 100);
}
