//! Where buffers cannot be watched, and buffers that no watchpoint suits: the program does not notice, and the data say what
//! could not be measured.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, recover, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, invariants, messages, paths, rows, watchpoints};

/// The tag of the first kind of buffer in `reach_buffers.c`.
const FIRST_TAG: i64 = 500;

/// The kinds in the order of that program.
const KINDS: &[&str] = &[
    "tiny",
    "unaligned",
    "32 bits",
    "huge",
    "nothing",
    "freed",
    "unmapped",
    "stack",
    "read-only",
    "shared",
    "absolute",
    "columns",
    "in place",
    "twice",
    "persistent",
    "children",
    "kernel",
    "threads",
];

fn tag(kind: &str) -> i64 {
    FIRST_TAG + KINDS.iter().position(|&name| name == kind).expect("a kind") as i64
}

/// A program of `tests/apps` with every buffer watched, whatever it costs.
fn job<'a>(mpi: &'a Mpi, app: &str, form: Form, place: &'a Path) -> Job<'a> {
    Job::new(mpi, 2, build::app(mpi, app), form, place)
        .env("LAPSCOPE_REACH", "on")
        .env("LAPSCOPE_REACH_SHARE", "100")
        .env("LAPSCOPE_REACH_MIN_BYTES", "0")
        .env("LAPSCOPE_REACH_BUDGET", "100")
}

fn assert_unharmed(mpi: &Mpi, bare: &Outcome, with: &Outcome) {
    let differences = outcome_differences(bare, with);
    let said = &with.said;
    assert!(differences.is_empty(), "{}: {}\n{said:#?}", mpi.name, differences.join("\n"));
}

fn ranks(mpi: &Mpi, run: &Path) -> Vec<Connection> {
    let ranks: Vec<_> = rows::databases(run).iter().map(|path| rows::open(path)).collect();
    assert_eq!(ranks.len(), 2, "{}: {:?}", mpi.name, rows::files(run));
    ranks
}

fn number(database: &Connection, query: &str) -> i64 {
    let text = rows::value(database, query);
    text.parse().unwrap_or_else(|_| panic!("{query}: {text}"))
}

/// How many buffers were left out for a reason.
fn left_out(database: &Connection, reason: &str) -> i64 {
    let query = "SELECT ifnull(sum(buffers), 0) FROM watch_left_out WHERE reason = ";
    number(database, &format!("{query}'{reason}'"))
}

/// How many watches of a kind of buffer there are with this.
fn watches(database: &Connection, kind: &str, with: &str) -> i64 {
    let query =
        "SELECT count(*) FROM watch w JOIN operation o ON o.id = operation_id WHERE posted_tag";
    number(database, &format!("{query} = {} AND ({with})", tag(kind)))
}

/// Runs a program bare and watched; its data, when nothing was changed.
fn unharmed(mpi: &Mpi, app: &str, args: &[&str], inside: &[&str]) -> Vec<Connection> {
    let (bare_place, place) = (place(), place());
    let bare = job(mpi, app, Form::Bare, bare_place.path()).args(args).run();
    assert_eq!(bare.code, 0, "{app} under {}: {}", mpi.name, bare.stderr);
    let front = inside.iter().map(Into::into).collect();
    let job = job(mpi, app, Form::Preload, place.path()).args(args).inside(front);
    assert_unharmed(mpi, &bare, &job.run());
    let run = job.run_directory();
    let what = format!("{app} {args:?} under {}", mpi.name);
    assert_eq!(messages::check(&run), Ok(()), "{what}");
    let ranks = ranks(mpi, &run);
    for database in &ranks {
        assert_eq!(invariants::check(database), Ok(()), "{what}");
        assert_eq!(rows::value(database, "SELECT ended FROM rank"), "finalize", "{what}");
    }
    ranks
}

/// Nothing was watched, and it says why.
fn assert_blind(mpi: &Mpi, database: &Connection) {
    assert_eq!(number(database, "SELECT count(*) FROM watch"), 0, "{}", mpi.name);
    let problem = rows::value(database, "SELECT ifnull(problem, '') FROM watcher");
    assert!(problem.len() > 10, "no problem is named: {problem:?}, {}", mpi.name);
    assert_eq!(number(database, "SELECT words FROM watcher"), 0, "{}", mpi.name);
}

/// As in containers and under `perf_event_paranoid`.
#[test]
fn watchpoints_refused() {
    let front = build::tool("without");
    let front = front.to_str().expect("a path of letters");
    for (turn, error) in ["EPERM", "EACCES", "ENOSYS"].into_iter().enumerate() {
        for mpi in mpis!(turn) {
            for database in unharmed(mpi, "alone", &[], &[front, "perf", error]) {
                assert_blind(mpi, &database);
            }
        }
    }
}

/// What `lapscope doctor` says of them, behind these words of a command line.
fn diagnosis(front: &[&Path]) -> Value {
    let lapscope = paths::lapscope();
    let line = [front, &[&lapscope]].concat();
    let mut doctor = child::command(line[0]);
    let output = doctor.args(&line[1..]).args(["doctor", "--format", "json"]).output();
    let answer: Value =
        serde_json::from_slice(&output.expect("a command").stdout).expect("an answer");
    let mut all = answer["findings"].as_array().expect("findings").iter();
    all.find(|it| it["name"] == "watchpoints").expect("a finding").clone()
}

#[test]
fn doctor_says_whether_words_can_be_watched() {
    let front = build::tool("without");
    for error in ["EPERM", "EACCES", "ENOSYS"] {
        let refused = diagnosis(&[&front, Path::new("perf"), Path::new(error)]);
        assert_eq!(refused["status"], "note", "{error}: {refused}");
        let advice = refused["advice"].as_str().expect("advice");
        assert!(advice.contains("container") || advice.contains("sysctl"), "{error}: {advice}");
    }
    let here = diagnosis(&[]);
    let said = here["says"].as_str().expect("a sentence");
    let words = watchpoints::at_once();
    assert_eq!(here["status"] == "ok", words > 0, "{here}");
    assert!(words == 0 || said.starts_with(&format!("{words} words")), "{words}: {said}");
}

/// The program has all of them, or half: its own go on counting.
#[test]
fn watchpoints_taken() {
    if !watchpoints::are_there() {
        return;
    }
    for mpi in mpis!() {
        for database in unharmed(mpi, "reach_taken", &[], &[]) {
            assert_blind(mpi, &database);
        }
        let most = watchpoints::at_once() - 1;
        for database in unharmed(mpi, "reach_taken", &[&most.to_string()], &[]) {
            let words = number(&database, "SELECT words FROM watcher");
            if words == 0 {
                assert_blind(mpi, &database);
            }
            assert!(words <= 1, "{words} words of one under {}", mpi.name);
        }
    }
}

/// Buffers of every kind, one after the other: nothing changes.
#[test]
fn buffers_of_every_kind() {
    for mpi in mpis!() {
        unharmed(mpi, "reach_buffers", &[], &[]);
    }
}

/// Memory that other processes write, and buffers that MPI reads and writes in one call, are not watched; that is counted.
#[test]
fn buffers_that_cannot_be_watched() {
    if !watchpoints::are_there() {
        return;
    }
    for mpi in mpis!() {
        for database in unharmed(mpi, "reach_buffers", &["shared", "in place"], &[]) {
            assert_eq!(watches(&database, "shared", "1"), 0, "{}", mpi.name);
            assert_eq!(number(&database, "SELECT count(*) FROM watch WHERE side = 'send'"), 0);
            for reason in ["shared", "in_place"] {
                assert!(left_out(&database, reason) > 0, "{reason} under {}", mpi.name);
            }
        }
    }
}

/// What a kind of buffer, alone, must have been seen to do: a condition on its watches that holds for some of them, and one that
/// holds for none.
const SEEN: &[(&str, &str, &str)] = &[
    ("tiny", "side = 'receive' AND toucher = 'program' AND buffer_bytes < 8", "buffer_bytes > 7"),
    ("unaligned", "side = 'receive' AND toucher = 'program'", "on_stack"),
    ("unaligned", "side = 'send' AND toucher = 'program'", "sparse"),
    ("32 bits", "side = 'receive' AND toucher = 'program'", "sparse"),
    ("32 bits", "side = 'send' AND toucher = 'program'", "offset % 4 <> 0"),
    ("huge", "side = 'send' AND toucher = 'program'", "buffer_bytes <> 48 * 1048576"),
    ("freed", "side = 'receive'", "on_stack"),
    ("unmapped", "side = 'receive'", "on_stack"),
    ("stack", "side = 'receive'", "NOT on_stack"),
    ("read-only", "side = 'receive' AND toucher = 'program'", "side = 'send' AND hits > 0"),
    ("absolute", "side = 'receive' AND toucher = 'program'", "buffer_bytes > 4096"),
    // data only: not what lies between two elements of a column
    ("columns", "side = 'receive' AND toucher = 'program'", "offset % 56 >= 8 OR NOT sparse"),
    ("columns", "side = 'send' AND toucher = 'program'", "offset % 56 >= 8 OR NOT sparse"),
    ("persistent", "side = 'receive' AND toucher = 'program'", "on_stack"),
    ("persistent", "side = 'send' AND toucher = 'program'", "on_stack"),
    ("children", "side = 'receive' AND toucher = 'program'", "on_stack"),
    // the kernel, and another thread, are not seen
    ("kernel", "side = 'receive'", "side = 'receive' AND toucher = 'program'"),
    ("threads", "side = 'receive'", "side = 'receive' AND toucher = 'program'"),
];

#[test]
fn each_kind_of_buffer_is_seen() {
    if !watchpoints::are_there() {
        return;
    }
    for (turn, kind) in KINDS.iter().enumerate() {
        let judged: Vec<_> = SEEN.iter().filter(|(name, ..)| name == kind).collect();
        if judged.is_empty() {
            continue;
        }
        for mpi in share!(turn, mpi::debian()) {
            let ranks = unharmed(mpi, "reach_buffers", &[kind], &[]);
            for (_, some, none) in &judged {
                for database in &ranks {
                    let what = format!("{kind} under {}", mpi.name);
                    assert!(watches(database, kind, some) > 0, "{what}: none with {some}");
                    assert_eq!(watches(database, kind, none), 0, "{what}: some with {none}");
                }
            }
        }
    }
}

/// How long threads ran that were not watched.
#[test]
fn threads_that_are_not_seen_are_counted() {
    let mpi = mpi::all()[0];
    for database in unharmed(mpi, "reach_buffers", &["threads"], &[]) {
        let other = number(&database, "SELECT ifnull(other_cpu_ns, 0) FROM watcher");
        assert!(other > 0 || !watchpoints::are_there(), "{other} ns");
    }
}

/// Buffers of datatypes at random, with gaps and in any order, as those of `sends::datatypes_with_gaps_arrive_as_they_are`.
#[test]
fn datatypes_with_gaps() {
    for (turn, seed) in ["3", "4"].into_iter().enumerate() {
        for mpi in mpis!(turn) {
            unharmed(mpi, "copied_types", &[seed, "40"], &[]);
        }
    }
}

/// A child of the program, and what it becomes, have nothing of ours.
#[test]
fn children() {
    for mpi in mpis!() {
        for app in ["fork_exec", "threads"] {
            unharmed(mpi, app, &[], &[]);
        }
    }
}

#[test]
fn partitioned_requests() {
    let functions = ["MPI_Psend_init".to_owned()];
    let have_them = |mpi: &&Mpi| build::missing(mpi, &functions).is_empty();
    for mpi in share!(mpi::all().iter().copied().filter(have_them).collect()) {
        let place = place();
        let job = job(mpi, "partitioned", Form::Preload, place.path());
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{}: {}", mpi.name, outcome.stderr);
        let all = rows::databases(&job.run_directory());
        let left: i64 = all.iter().map(|path| left_out(&rows::open(path), "partitioned")).sum();
        assert!(left > 0 || !watchpoints::are_there(), "{}", mpi.name);
    }
}

/// A rank that dies while words are watched dies as it did; what was seen until then is in the data.
#[test]
fn ranks_that_die() {
    for (turn, how) in ["kill", "segv", "_exit", "term"].into_iter().enumerate() {
        for mpi in mpis!(turn) {
            let (bare_place, place) = (place(), place());
            let bare = job(mpi, "die", Form::Bare, bare_place.path()).args([how]).run();
            let job = job(mpi, "die", Form::Preload, place.path()).args([how]);
            let with = job.run();
            assert_eq!(bare.code != 0, with.code != 0, "{how} under {}", mpi.name);
            recover(&job.run_directory());
            for database in ranks(mpi, &job.run_directory()) {
                assert_eq!(
                    invariants::check_of_killed(&database),
                    Ok(()),
                    "{how} under {}",
                    mpi.name
                );
                if watchpoints::are_there() {
                    assert_eq!(rows::value(&database, "SELECT problem FROM watcher"), "NULL");
                    let seen =
                        number(&database, "SELECT count(*) FROM watch WHERE toucher = 'program'");
                    assert!(seen > 0, "nothing was seen before {how} under {}", mpi.name);
                }
            }
        }
    }
}
