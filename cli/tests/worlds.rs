//! Runs whose processes have spawned others: several MPI_COMM_WORLDs in one run directory.

use crate::fixture::{answer, command, json};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::small::{self, ISEND};
use lapscope_fixture::tables::{Communicator, Rank};
use predicates::str::contains;
use serde_json::{json, Value};

/// The usual two ranks, and rank 1 of a world 3 of two; its rank 0 was killed in an MPI_Recv from rank 1.
fn run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    small::write(directory.path());
    let dead = Rank { world: 3, ended: "killed", summarized: 0, ..Rank::new(0) };
    dead.write(directory.path(), |file| small::stuck(file, ISEND));
    directory
}

/// As files and as one merged file.
fn both_ways(check: impl Fn(&std::path::Path, &str)) {
    let run = run();
    check(run.path(), ".");
    answer(run.path(), &["export", "sqlite", ".", "--output", "all.db"]);
    check(run.path(), "all.db");
}

#[test]
fn ranks_of_other_worlds_have_names_of_their_own() {
    both_ways(|directory, run| {
        let report = json(directory, &["report", run]);
        let ranks: Vec<&Value> =
            report["ranks"].as_array().unwrap().iter().map(|rank| &rank["rank"]).collect();
        assert_eq!(ranks, [&json!(0), &json!(1), &json!("3:0")]);
        assert_eq!(
            (&report["head"]["world_size"], &report["head"]["ranks"]),
            (&json!(2), &json!(3))
        );
        let worlds = report["head"]["worlds"].as_array().unwrap();
        let worlds: Vec<_> = worlds
            .iter()
            .map(|world| (&world["world"], &world["world_size"], &world["ranks"]))
            .collect();
        assert_eq!(worlds, [(&json!(1), &json!(2), &json!(2)), (&json!(3), &json!(2), &json!(1))]);
        let text = answer(directory, &["report", run]);
        assert!(text.contains("2 ranks and 2 spawned in 1 world on node1"), "{text}");
        assert!(text.contains("world 3: ./app -n 4"), "{text}");
    });
}

#[test]
fn what_is_missing_is_told_world_by_world() {
    both_ways(|directory, run| {
        let report = json(directory, &["report", run]);
        let problem = &report["problems"][0];
        assert_eq!(
            (&problem["kind"], &problem["ranks"]),
            (&json!("missing_ranks"), &json!(["3:1"]))
        );
        let message = problem["message"].as_str().unwrap();
        assert!(message.starts_with("no data of 1 of 4 ranks (3:1)"), "{message}");
    });
}

#[test]
fn spawned_processes_that_are_not_recorded_are_told() {
    let directory = tempfile::tempdir().unwrap();
    // one of two parents made them: rank 0 speaks for both; two of world 3 are there, a third is not
    let inter = |identity, remote_size, comm_rank, name| {
        let ends = Communicator { identity, remote_size, comm_rank, ..Communicator::default() };
        Communicator { kind: "inter", name, ..ends }
    };
    let problems = |size| {
        let parent = Rank { world_size: 1, summarized: 0, ..Rank::new(0) };
        let path = parent.write(directory.path(), |file| {
            file.insert(inter(7, size, 0, "MPI_Comm_spawn"));
            file.insert(inter(8, 50, 1, "MPI_Comm_spawn"));
            file.insert(inter(9, 50, 0, "MPI_Intercomm_create"));
        });
        let report = json(directory.path(), &["report", "."]);
        std::fs::remove_file(path).unwrap();
        report["problems"].as_array().unwrap().clone()
    };
    for rank in [0, 1] {
        Rank { world: 3, summarized: 0, ..Rank::new(rank) }.write(directory.path(), |_| ());
    }
    let found = problems(3);
    assert_eq!(found[0]["kind"], "unrecorded_children");
    assert!(found[0]["message"].as_str().unwrap().starts_with("1 of 3 spawned processes"));
    assert!(problems(2).iter().all(|problem| problem["kind"] != "unrecorded_children"));
}

#[test]
fn peers_are_of_the_same_world() {
    both_ways(|directory, run| {
        let pending = json(directory, &["hang", "--pending", run, "--rank", "3:0"]);
        let items = pending["pending"].as_array().unwrap();
        assert_eq!(items.len(), 2);
        assert_eq!((&items[1]["rank"], &items[1]["peer"]), (&json!("3:0"), &json!("3:1")));
        assert_eq!(
            json(directory, &["hang", "--pending", run, "--rank", "0"])["pending"],
            json!([])
        );
        let found =
            |peer: &str| json(directory, &["requests", run, "--peer", peer])["found"].clone();
        assert_eq!((found("1"), found("3:1")), (json!(3), json!(1)));
        let text = answer(directory, &["hang", "--pending", run]);
        assert!(text.starts_with("rank 3:0 on node1 was killed; 1 request pending"), "{text}");
        assert!(
            text.contains("MPI_Waitall, entered 29.0 µs after MPI_Init and not left"),
            "{text}"
        );
        assert!(
            text.contains(
                "MPI_Isend to rank 3:1, tag 7, 1000 bytes, posted 19.0 µs after MPI_Init"
            ),
            "{text}"
        );
    });
}

#[test]
fn queries_tell_worlds_apart() {
    both_ways(|directory, run| {
        let sql = "SELECT group_concat(rank || '=' || world || ':' || world_rank, ' ') AS ranks FROM rank";
        assert_eq!(json(directory, &["sql", run, sql])[0]["ranks"], "0=1:0 1=1:1 2=3:0");
        let calls = "SELECT count(*) AS calls FROM calls JOIN rank USING (rank) WHERE world = 3";
        assert_eq!(json(directory, &["sql", run, calls])[0]["calls"], 1);
    });
}

#[test]
fn what_is_no_rank_is_refused() {
    let refused = command(run().path(), &["requests", ".", "--rank", "3:x"]).assert();
    refused.code(2).stderr(contains("world:rank, as 2:0"));
}
