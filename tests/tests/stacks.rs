//! `lapscope hang` of jobs that nobody records: where each rank is, by its stack, and that looking disturbs nobody.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::build;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::Mpi;
use lapscope_tests::watched::Watched;

/// Bare, but its ranks can be found again by what tests look for.
fn job<'a>(mpi: &'a Mpi, ranks: u32, app: &str, place: &'a Path) -> Job<'a> {
    let job = Job::new(mpi, ranks, build::app(mpi, app), Form::Bare, place);
    let run = job.run_directory();
    job.env("LAPSCOPE_DIR", run)
}

/// What `lapscope hang` says of the ranks of a job.
fn look(job: &Watched, interval: &str) -> Value {
    let answer = job.stacks(interval, &[]).unwrap_or_else(|error| panic!("{error}"));
    lapscope_fixture::documented::check(&answer.to_string());
    answer
}

/// Where a rank is found: what it does, in which MPI call or system call, and a function of its call path.
struct Expected {
    rank: u64,
    doing: &'static str,
    inside: &'static str,
    function: &'static str,
}

const fn expect(
    rank: u64,
    doing: &'static str,
    inside: &'static str,
    function: &'static str,
) -> Expected {
    Expected { rank, doing, inside, function }
}

fn check(answer: &Value, expected: &Expected) {
    let ranks = answer["ranks"].as_array().expect("ranks");
    let rank =
        ranks.iter().find(|it| it["rank"] == expected.rank && !it["frames"].to_string().is_empty());
    let rank = rank.unwrap_or_else(|| panic!("no rank {} in {answer:#}", expected.rank));
    assert_eq!(rank["doing"], expected.doing, "{answer:#}");
    let inside = [&rank["call"], &rank["sleeps_in"]].map(|it| it.as_str().unwrap_or_default());
    assert!(expected.inside.is_empty() || inside.contains(&expected.inside), "{rank:#}");
    let frames = rank["frames"].as_array().expect("frames");
    let is_there = |name: &str| frames.iter().any(|frame| frame["function"] == name);
    assert!(is_there(expected.function) && is_there("main"), "{rank:#}");
    assert!(frames.iter().all(|frame| frame["function"] != "_start"), "{rank:#}");
    let line = frames.iter().find(|frame| frame["function"] == expected.function);
    assert!(line.is_some_and(|it| it["line"].is_u64()), "{rank:#}");
    assert_eq!(rank["stands"], true, "{rank:#}");
}

/// Programs that hang, how many ranks they have, and where these are.
const PROGRAMS: [(&str, &str, u32, &[Expected]); 4] = [
    (
        "hang/messages",
        "ring_without_one",
        4,
        &[
            expect(2, "in_mpi", "MPI_Barrier", "ring_without_one"),
            expect(1, "in_mpi", "MPI_Sendrecv", "ring_without_one"),
        ],
    ),
    (
        "hang/outside",
        "computes_for_ever",
        3,
        &[expect(1, "computes", "", "computes_for_ever"), expect(0, "in_mpi", "", "good_rounds")],
    ),
    ("hang/outside", "reads_from_nobody", 3, &[expect(1, "asleep", "read", "reads_from_nobody")]),
    ("hang/collectives", "different_root", 3, &[expect(0, "in_mpi", "", "different_root")]),
];

#[test]
fn where_ranks_are_that_nobody_records() {
    for (turn, (app, program, ranks, expected)) in PROGRAMS.into_iter().enumerate() {
        for mpi in mpis!(turn) {
            let place = place();
            let mut job = Watched::start(&job(mpi, ranks, app, place.path()).args([program]));
            job.until_here(ranks).unwrap_or_else(|error| panic!("{}: {error}", mpi.name));
            std::thread::sleep(Duration::from_millis(500));
            let answer = look(&job, "0.3");
            println!("{} {program}: {}", mpi.name, answer["sentence"]);
            expected.iter().for_each(|it| check(&answer, it));
        }
    }
}

/// Threads asleep in calls that a tracer would end; ranks that compute give what they would have given.
#[test]
fn nobody_is_disturbed() {
    let limit = Duration::from_secs(60);
    for mpi in mpis!() {
        let place = place();
        let mut watched = Watched::start(&job(mpi, 2, "looked_at", place.path()).args(["2"]));
        watched.until_here(1).unwrap_or_else(|error| panic!("{}: {error}", mpi.name));
        let mut looks = 0;
        while !watched.is_over() && looks < 5 {
            let answer = match watched.stacks("0.1", &[]) {
                Ok(answer) if answer["ranks"][0]["doing"] != "unknown" => answer,
                Err(error) if !error.contains("there is no process") => panic!("{error}"),
                _ => break, // it has just ended
            };
            let threads = answer["ranks"][0]["threads"].as_u64().expect("a number");
            assert!(threads >= 5, "{answer:#}");
            looks += 1;
        }
        let seen = watched.outcome(limit).unwrap_or_else(|error| panic!("{error}"));
        assert!(seen.stdout.ends_with(", 0 interrupted\n"), "after {looks} looks: {seen:?}");
        assert_eq!(seen.code, 0, "{seen:?}");
        println!("{}: {looks} looks, {}", mpi.name, seen.stdout);
        assert!(looks > 0, "{seen:?}");
    }
}

/// Lets all ranks but 1 be recorded.
const BUT_ONE: &str = r#"#!/bin/sh
case "$OMPI_COMM_WORLD_RANK$PMI_RANK" in
1) unset LD_PRELOAD ;;
esac
exec "$@"
"#;

/// Where ranks are, and beside it what their records say of it, whose verdict it then is: also where only some are recorded, and
/// with spools that lie elsewhere.
#[test]
fn recorded_ranks_and_others_are_one_answer() {
    for mpi in mpis!() {
        for is_whole in [true, false] {
            let place = place();
            let (script, storage) = (place.path().join("but-one"), place.path().join("storage"));
            fs::write(&script, BUT_ONE).expect("a script");
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its mode");
            fs::create_dir(&storage).expect("a directory");
            let app = build::app(mpi, "hang/messages");
            let job = match is_whole {
                true => {
                    Job::new(mpi, 2, app, Form::Preload, place.path()).env("LAPSCOPE_FILES", "node")
                }
                false => Job::new(mpi, 2, script, Form::Preload, place.path()).args([app]),
            };
            let job = job.env("LAPSCOPE_SPOOL_DIR", &storage);
            let run = job.run_directory();
            let mut watched = Watched::start(&job.args(["both_receive"]));
            watched.until_here(2).unwrap_or_else(|error| panic!("{}: {error}", mpi.name));
            std::thread::sleep(Duration::from_millis(500));
            let page = place.path().join("page.html");
            let more = ["--html", page.to_str().expect("a name")];
            let answer = watched.stacks("0.3", &more).unwrap_or_else(|error| panic!("{error}"));
            lapscope_fixture::documented::check(&answer.to_string());
            for rank in [0, 1] {
                check(&answer, &expect(rank, "in_mpi", "MPI_Recv", "both_receive"));
                let found = &answer["ranks"][rank as usize];
                assert_eq!(found["is_recorded"], is_whole || rank == 0, "{found:#}");
            }
            let recorded = answer["recorded"].as_array().expect("recorded");
            assert_eq!(recorded.len(), 1, "{answer:#}");
            assert_eq!(recorded[0]["run"], run.to_str().expect("a name"), "{answer:#}");
            let verdict = &recorded[0]["verdict"];
            println!("{} whole {is_whole}: {verdict:#}", mpi.name);
            let is_deadlock = verdict["kind"] == "deadlock" && verdict["certain"] == true;
            assert_eq!(is_deadlock, is_whole, "{verdict:#}");
            let page = fs::read_to_string(page).expect("a page");
            assert!(page.contains("Verdict") && page.contains("Call paths"), "{page}");
            assert!(page.contains("both_receive messages.c:"), "{page}");
        }
    }
}
