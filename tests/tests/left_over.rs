//! What programs leave over at MPI_Finalize, and ranks that do not leave it.

use std::thread;
use std::time::Duration;

use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi;
use lapscope_tests::watched::{diagnosis, Watched};
use lapscope_tests::{answer, build, turn};
use serde_json::{json, Value};

fn left_over(mpi: &mpi::Mpi, arguments: &[&str]) -> Value {
    let place = place();
    let program = build::app(mpi, "left_over");
    let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args(arguments);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    answer::ask("report", &job.run_directory())["left_over"].clone()
}

/// Its kind, how many, whose, and how many of them each call left or made.
fn brief(left: &Value) -> Value {
    let sites = answer::rows(left, "sites").iter().map(|site| json!([site["call"], site["count"]]));
    json!([left["what"], left["count"], left["ranks"], sites.collect::<Vec<_>>()])
}

#[test]
fn all_that_is_forgotten_is_found_by_place_and_count() {
    for mpi in mpi::debian() {
        let found = left_over(mpi, &[]);
        let found: Vec<Value> = found.as_array().expect("a list").iter().map(brief).collect();
        let expected = [
            json!(["request", 4, [0, 1], [["MPI_Isend", 3], ["MPI_Irecv", 1]]]),
            json!(["message", 2, [0], [["MPI_Send", 2]]]),
            json!(["receive", 2, [1], [["MPI_Irecv", 1], ["MPI_Irecv", 1]]]),
            json!(["persistent_request", 2, [0, 1], [["MPI_Send_init", 2], ["MPI_Send_init", 2]]]),
            json!(["communicator", 6, [0, 1], [["MPI_Comm_dup", 8], ["MPI_Comm_split", 2]]]),
        ];
        assert_eq!(found, expected, "{}", mpi.name);
        assert_eq!(left_over(mpi, &["nothing"]), json!([]), "{}", mpi.name);
        let found = left_over(mpi, &["cancels"]);
        let found: Vec<Value> = found.as_array().expect("a list").iter().map(brief).collect();
        let expected = json!(["request", 1, [1], [["MPI_Irecv", 1]]]);
        assert_eq!(found, [expected], "{}", mpi.name);
    }
}

#[test]
fn who_crashes_in_finalize_is_named() {
    for mpi in mpi::debian() {
        let place = place();
        let program = build::app(mpi, "left_over");
        let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args(["crashes"]);
        assert_ne!(job.run().code, 0, "{}", mpi.name);
        let answer = diagnosis(&job.run_directory(), 0.3).unwrap_or_else(|text| panic!("{text}"));
        let verdict = &answer["verdict"];
        assert_eq!(verdict["kind"], "dead", "{}: {answer:#}", mpi.name);
        assert!(verdict["ranks"].as_array().is_some_and(|it| it.contains(&json!(1))), "{answer:#}");
        assert!(answer::text(verdict, "sentence").contains("MPI_Finalize"), "{answer:#}");
    }
}

#[test]
fn who_hangs_in_finalize_with_a_request_of_its_own_is_named() {
    mpi::debian().into_iter().for_each(who_hangs_in_finalize);
}

fn who_hangs_in_finalize(mpi: &mpi::Mpi) {
    let place = place();
    let program = build::app(mpi, "left_over");
    let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args(["hangs"]);
    let _turn = turn::of_launches();
    let mut watched = Watched::start(&job);
    watched.until_here(2).unwrap_or_else(|text| panic!("{text}"));
    thread::sleep(Duration::from_millis(700));
    let answer = diagnosis(&job.run_directory(), 0.3).unwrap_or_else(|text| panic!("{text}"));
    assert!(!watched.is_over(), "{}", watched.stderr());
    watched.end();
    let after = diagnosis(&job.run_directory(), 0.3).unwrap_or_else(|text| panic!("{text}"));
    for answer in [answer, after] {
        let verdict = &answer["verdict"];
        assert_eq!(verdict["kind"], "unfinished", "{answer:#}");
        assert_eq!(verdict["ranks"], json!([0]), "{answer:#}");
        assert!(
            answer::text(verdict, "sentence").contains("MPI_Issend to rank 1, tag 6"),
            "{answer:#}"
        );
    }
}
