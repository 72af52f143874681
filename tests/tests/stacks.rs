//! `lapscope hang` of jobs that nobody records: where each rank is, by its stack, and that looking disturbs nobody.

mod gdb;
mod odd;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::{json, Value};

use lapscope_tests::build;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::paths;
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
            // who waits for rank 2; Intel MPI keeps what is sent to it
            expect(3, "in_mpi", "MPI_Sendrecv", "ring_without_one"),
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

/// What the program passed is said where it is certain, and never wrong: of each rank what is true, and of what something has to be
/// said, as the program passes constants.
#[test]
fn arguments_of_calls() {
    let world = "MPI_COMM_WORLD";
    let programs = [
        (
            "hang/messages",
            "missing_receive",
            json!({"to": 1, "tag": 7, "communicator": world}),
            "tag",
        ),
        ("hang/messages", "wrong_tag", json!({"from": 1, "tag": 1, "communicator": world}), "tag"),
        (
            "hang/messages",
            "wrong_source",
            json!({"from": 1, "tag": 7, "communicator": world}),
            "from",
        ),
        ("hang/collectives", "bcast_and_reduce", json!({"root": 0, "communicator": world}), "root"),
        ("hang/collectives", "order_swapped", json!({"communicator": world}), "communicator"),
    ];
    for (app, program, truth, certain) in programs {
        for mpi in share!(mpi::debian()) {
            let place = place();
            let mut job = Watched::start(&job(mpi, 3, app, place.path()).args([program]));
            job.until_here(3).unwrap_or_else(|error| panic!("{}: {error}", mpi.name));
            std::thread::sleep(Duration::from_millis(500));
            let answer = look(&job, "0.1");
            let rank = answer["ranks"]
                .as_array()
                .and_then(|ranks| ranks.iter().find(|it| it["rank"] == 0));
            let rank = rank.unwrap_or_else(|| panic!("no rank 0 in {answer:#}"));
            let said = rank["arguments"].as_object().cloned().unwrap_or_default();
            println!("{} {program}: {said:?}", mpi.name);
            // gcc's debug information has no addresses of objects of libraries, as Open MPI's handles are
            let is_certain = certain != "communicator" || mpi.name != "openmpi";
            assert!(said.contains_key(certain) || !is_certain, "{program}: {rank:#}");
            assert!(said.iter().all(|(name, value)| truth[name] == *value), "{program}: {rank:#}");
        }
    }
}

/// Functions that MPI calls, handlers of signals, libraries that pass calls on, depth, calls that only ask: none is taken for another.
#[test]
fn what_is_inside_of_what() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let mut job =
            Watched::start(&job(mpi, 6, "hang/within", place.path()).args(["each_elsewhere"]));
        job.until_here(6).unwrap_or_else(|error| panic!("{}: {error}", mpi.name));
        std::thread::sleep(Duration::from_millis(500));
        let answer = look(&job, "0.5");
        println!("{}: {}", mpi.name, answer["sentence"]);
        let rank = |number: usize| {
            let ranks = answer["ranks"].as_array().expect("ranks");
            ranks.iter().find(|it| it["rank"] == number).unwrap_or_else(|| panic!("{answer:#}"))
        };
        let is = |number: usize, what: Value| {
            let rank = rank(number);
            let object = what.as_object().expect("an object");
            assert!(object.iter().all(|(key, value)| rank[key] == *value), "{what} {rank:#}");
            assert_eq!(rank["stands"], true, "{rank:#}");
        };
        is(
            0,
            json!({"doing": "computes", "call": null, "within": "MPI_Reduce_local", "by_signal": false}),
        );
        is(1, json!({"doing": "asleep", "call": null, "within": "MPI_Send", "by_signal": false}));
        is(2, json!({"doing": "in_mpi", "call": "MPI_Recv", "within": null}));
        let passed = &rank(2)["arguments"];
        assert_eq!(
            (&passed["from"], &passed["tag"]),
            (&"MPI_ANY_SOURCE".into(), &"MPI_ANY_TAG".into())
        );
        assert!(rank(2)["depth"].as_u64().is_some_and(|depth| depth > 4000), "{:#}", rank(2));
        is(3, json!({"doing": "polls", "call": "MPI_Iprobe"}));
        is(4, json!({"doing": "computes", "call": null, "within": "MPI_Recv", "by_signal": true}));
        is(
            5,
            json!({"doing": "in_mpi", "call": "MPI_Ssend", "called_as": null, "wrapper_frames": 1}),
        );
        let said = answer["sentence"].to_string();
        let handler = " (within a handler of a signal that interrupted MPI_Recv, called at ";
        assert!(
            said.contains(handler) && said.contains("through MPI_Ssend of within at"),
            "{said}"
        );
        let tree = answer["tree"].to_string();
        for place in
            ["(inside MPI)", "combine within.c:", "<signal handler called>", "MPI_Ssend within.c:"]
        {
            assert!(tree.contains(place), "{answer:#}");
        }
    }
}

/// Threads asleep in calls that a tracer would end; ranks that compute give what they would have given.
#[test]
fn nobody_is_disturbed() {
    let limit = Duration::from_secs(60);
    for mpi in mpis!() {
        let place = place();
        let mut watched = Watched::start(&job(mpi, 2, "looked_at", place.path()).args(["4"]));
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

/// Spawned worlds, copies of ranks, and ranks whose first threads have ended.
#[test]
fn each_rank_is_found_once_by_the_name_of_its_world() {
    for mpi in mpis!() {
        let place = place();
        let program = build::app(mpi, "relatives");
        let of_it = job(mpi, 2, "relatives", place.path()).env("I_MPI_SPAWN", "on");
        let mut job = Watched::start(&of_it);
        job.until_here(2).unwrap_or_else(|error| panic!("{}: {error}", mpi.name));
        std::thread::sleep(Duration::from_millis(500));
        let answer = job.stacks_of(&program, "0.1").unwrap_or_else(|error| panic!("{error}"));
        lapscope_fixture::documented::check(&answer.to_string());
        let ranks = answer["ranks"].as_array().expect("ranks");
        let names: Vec<String> = ranks.iter().map(|it| it["rank"].to_string()).collect();
        let has_spawned = job.stderr().contains("here 0 4");
        println!("{}: {names:?}, {}", mpi.name, answer["sentence"]);
        let expected = ["0", "1", "\"2:0\"", "\"2:1\""];
        assert_eq!(names, expected[..if has_spawned { 4 } else { 2 }], "{answer:#}");
        assert_eq!(answer["other_jobs"], json!([]), "{answer:#}");
        assert!(ranks.iter().all(|it| it["call"] == "MPI_Recv"), "{answer:#}");
        assert_eq!(
            (&answer["ended"], &answer["elsewhere"]),
            (&json!([]), &json!([])),
            "{answer:#}"
        );
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

/// The lines that are marked for a rank, as `FUNCTION:LINE`, innermost first.
fn marked(source: &str, rank: u64) -> Vec<String> {
    let (mut function, mut marked) = ("<module>", Vec::new());
    for (number, line) in (1..).zip(source.lines()) {
        if let Some(definition) = line.trim_start().strip_prefix("def ") {
            function = definition.split('(').next().unwrap_or(definition);
        } else if !line.starts_with(' ') && !line.is_empty() {
            function = "<module>";
        }
        let marks = line.split_once("# rank").map_or("", |(_, marks)| marks);
        let depths = marks.split(", rank").filter_map(|mark| mark.trim().split_once(": "));
        for (_, depth) in depths.filter(|(of, _)| of.parse() == Ok(rank)) {
            marked.push((depth.parse::<u32>().expect("a depth"), format!("{function}:{number}")));
        }
    }
    marked.sort();
    marked.into_iter().map(|(_, place)| place).collect()
}

/// The frames of a rank that are the program's own, in the same form, and whether there are others of an interpreter.
fn own_lines(rank: &Value, program: &str) -> (Vec<String>, bool) {
    let frames = rank["frames"].as_array().expect("frames");
    let is_own =
        |frame: &&Value| frame["file"].as_str().is_some_and(|file| file.ends_with(program));
    let name = |frame: &Value| {
        let function = frame["function"].as_str().expect("a function");
        format!("{}:{}", function.rsplit('.').next().unwrap_or(function), frame["line"])
    };
    let lines = frames.iter().filter(is_own).map(name).collect();
    let texts = frames.iter().map(|frame| frame["function"].as_str().unwrap_or_default());
    (lines, texts.into_iter().any(|it| it.starts_with("_PyEval") || it.starts_with("_PyObject")))
}

/// Lines of Python stand in place of the interpreter's own frames.
#[test]
fn lines_of_python() {
    let program = paths::apps().join("python_hangs.py");
    let source = fs::read_to_string(&program).expect("the program");
    for (python, mpi) in share!(mpi::of_each_python()) {
        let place = place();
        let job = Job::new(mpi, 4, paths::python(&python), Form::Bare, place.path());
        let run = job.run_directory();
        let job = job.args([&program]).env("MPI4PY_MPIABI", mpi.abi).env("LAPSCOPE_DIR", run);
        let with = format!("{python} under {}", mpi.name);
        let mut job = Watched::start(&job);
        job.until_here(4).unwrap_or_else(|error| panic!("{with}: {error}"));
        std::thread::sleep(Duration::from_millis(500));
        let answer = look(&job, "0.3");
        println!("{with}: {}", answer["sentence"]);
        assert_eq!(answer["notes"].as_array().map(Vec::len), Some(0), "{with}: {answer:#}");
        let ranks = answer["ranks"].as_array().expect("ranks");
        assert_eq!(ranks.len(), 4, "{with}: {answer:#}");
        for rank in ranks {
            let number = rank["rank"].as_u64().expect("a rank");
            let (lines, has_others) = own_lines(rank, "python_hangs.py");
            assert_eq!(lines, marked(&source, number), "{with}: {rank:#}");
            assert!(!has_others, "{with}: {rank:#}");
            let expected = [json!("MPI_Barrier"), Value::Null, Value::Null, Value::Null];
            let is_right = match number {
                1 => ["MPI_Recv", "MPI_Mrecv", "MPI_Mprobe"].iter().any(|it| rank["call"] == *it),
                _ => rank["call"] == expected[number as usize],
            };
            assert!(is_right && rank["stands"] == true, "{with}: {rank:#}");
            let doing = ["in_mpi", "in_mpi", "computes", "asleep"][number as usize];
            assert_eq!(rank["doing"], doing, "{with}: {rank:#}");
        }
    }
}
