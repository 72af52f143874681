//! Ranks that die: what was complete before is in the data, what was not is listed with its call path.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::expect::Expectation;
use lapscope_tests::launch::{lapscope, place, recover, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, invariants, rows};

/// What `die.c` has done when rank 0 dies.
const ROWS: &str = "\
rank=0 request MPI_Isend send bytes=16 peer=1 tag=1 ended=waited by=MPI_Waitall x10
rank=0 request MPI_Irecv recv bytes=16 peer=1 tag=1 ended=waited by=MPI_Waitall x10
rank=1 request MPI_Isend send bytes=16 peer=0 tag=1 ended=waited by=MPI_Waitall x10
rank=1 request MPI_Irecv recv bytes=16 peer=0 tag=1 ended=waited by=MPI_Waitall x10
rank=0-1 call MPI_Waitall other completed=2 x10
rank=0-1 call MPI_Barrier collective
rank=0 request MPI_Irecv recv bytes=16 peer=1 tag=2 ended=pending x3
rank=1 request MPI_Irecv recv bytes=16 peer=0 tag=3 ended=pending
rank=1 call MPI_Wait other completed=0
rank=0-1 mark - 2 x10
rank=0-1 mark exchange 1 x10
rank=0-1 mark exchange -1 x10
rank=0-1 mark until_death 1";

/// What `lapscope hang --pending` lists: kind of row, rank, call, and the function that made it.
const PENDING: &[(&str, i64, &str, &str)] = &[
    ("call", 1, "MPI_Wait", "wait_for_ever"),
    ("request", 0, "MPI_Irecv", "post_never_matched"),
    ("request", 0, "MPI_Irecv", "post_never_matched"),
    ("request", 0, "MPI_Irecv", "post_never_matched"),
    ("request", 1, "MPI_Irecv", "main"),
];

/// What was pending is listed with its call path.
fn check_pending(run: &Path) {
    let printed =
        lapscope(["pending".as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    let json: Value =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut listed: Vec<_> = json["pending"]
        .as_array()
        .unwrap_or_else(|| panic!("{json:#}"))
        .iter()
        .map(|entry| {
            let rank = entry["rank"].as_i64().unwrap_or(-1);
            (
                text(&entry["what"]),
                rank,
                text(&entry["call"]),
                text(&entry["frames"][0]["function"]),
            )
        })
        .filter(|(_, _, call, _)| call != "MPI_Abort")
        .collect();
    listed.sort();
    let listed: Vec<_> =
        listed.iter().map(|(what, rank, call, at)| (&**what, *rank, &**call, &**at)).collect();
    assert_eq!(listed, PENDING);
    let text = lapscope(["pending".as_ref(), run.as_os_str()]);
    assert!(text.contains("post_never_matched") && text.contains("die.c:"), "{text}");
}

fn check_rows(mpi: &Mpi, run: &Path, ended: [&str; 2]) {
    let databases = rows::databases(run);
    assert_eq!(databases.len(), 2, "{:?}", rows::files(run));
    for (path, ended) in databases.iter().zip(ended) {
        let database = rows::open(path);
        assert_eq!(invariants::check(&database), Ok(()), "{}", path.display());
        assert_eq!(rows::value(&database, "SELECT ended FROM rank"), ended, "{}", path.display());
    }
    let expectation = Expectation::parse(ROWS, mpi, "die.c");
    if let Err(differences) = expectation.compare(&rows::read_run(run)) {
        panic!("{}: rows (- expected, + found)\n{differences}", mpi.name);
    }
}

/// A run whose launcher came to its end. Hydra may lose the connection to the proxy of a job that dies before that has told it of the
/// exit codes: then it says so and leaves with 255, whatever the ranks left with. Or it takes its own end of one for a signal, and leaves
/// with 1.
fn end_of(job: &Job) -> Outcome {
    const TIMES: u32 = 3;
    let is_spoilt = |it: &Outcome| {
        (it.code == 255 && it.stderr.contains("[mpiexec@"))
            || (it.code == 1 && it.stdout.contains("Hangup (signal 1)"))
    };
    let mut outcome = job.run();
    for _ in 1..TIMES {
        if !is_spoilt(&outcome) {
            break;
        }
        fs::remove_dir_all(job.run_directory()).ok();
        outcome = job.run();
    }
    outcome
}

/// Hydra's exit code is the bitwise or of all ranks' codes, and it depends on the moment whether the rank that it killed
/// with signal 9 is among them.
fn same_death(mpi: &Mpi, bare: i32, with: i32) -> bool {
    bare == with || (mpi.launcher == "mpirun.mpich" && bare | 9 == with | 9)
}

/// Dies in the way named; `ended` is what the database says of the two ranks. Variables are set as given. `turn`: each MPI has one
/// of the deaths in `make check`, those of Debian have all.
fn check_death(turn: usize, how: &str, ended: [&str; 2], environment: &[(&str, &Path)]) {
    for mpi in mpis!(turn) {
        let place = place();
        let app = build::app(mpi, "die");
        let bare = end_of(&Job::new(mpi, 2, &app, Form::Bare, place.path()).args([how]));
        let mut job = Job::new(mpi, 2, &app, Form::Preload, place.path()).args([how]);
        for (name, value) in environment {
            job = job.env(name, *value);
        }
        let with = end_of(&job);
        let run = job.run_directory();
        assert!(
            same_death(mpi, bare.code, with.code),
            "{} {how}: {} became {}\n{}",
            mpi.name,
            bare.code,
            with.code,
            with.stderr
        );
        if how != "abort" {
            // what a rank prints just before MPI_Abort may be lost on its way through a launcher
            assert!(
                with.stdout.starts_with("about to die\n"),
                "{} {how}: {}",
                mpi.name,
                with.stdout
            );
        }
        recover(&run);
        let left: Vec<_> = rows::files(&run)
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("spool"))
            .collect();
        assert!(left.is_empty(), "{} {how}: left after recover: {left:?}", mpi.name);
        check_rows(mpi, &run, ended);
        check_pending(&run);
    }
}

#[test]
fn abort() {
    check_death(0, "abort", ["abort", "killed"], &[]);
}

#[test]
fn exit_without_finalize() {
    check_death(1, "exit", ["exit", "killed"], &[]);
}

#[test]
fn exit_without_destructors() {
    check_death(2, "_exit", ["exit", "killed"], &[]);
}

/// A process that leaves by itself was not killed, whatever the C library calls it.
#[test]
fn exit_under_other_names() {
    for how in ["_Exit", "quick_exit"] {
        let place = place();
        let app = build::app(mpi::all()[0], "die");
        let job = Job::new(mpi::all()[0], 2, &app, Form::Preload, place.path()).args([how]);
        assert_ne!(job.run().code, 0);
        recover(&job.run_directory());
        check_rows(mpi::all()[0], &job.run_directory(), ["exit", "killed"]);
    }
}

#[test]
fn sigkill() {
    check_death(3, "kill", ["killed", "killed"], &[]);
}

#[test]
fn sigterm() {
    check_death(4, "term", ["killed", "killed"], &[]);
}

#[test]
fn sigsegv() {
    check_death(5, "segv", ["killed", "killed"], &[]);
}

#[test]
fn sigkill_with_the_spool_elsewhere() {
    let spools = place();
    check_death(6, "kill", ["killed", "killed"], &[("LAPSCOPE_SPOOL_DIR", spools.path())]);
    assert_eq!(rows::files(spools.path()), Vec::<PathBuf>::new());
}

/// `report` needs no `recover` before it, and says which ranks died.
#[test]
fn report_recovers_first() {
    for mpi in mpis!() {
        let place = place();
        let job =
            Job::new(mpi, 2, build::app(mpi, "die"), Form::Preload, place.path()).args(["kill"]);
        job.run();
        let run = job.run_directory();
        let mut report = lapscope(["report".as_ref(), run.as_os_str()]);
        for _ in 0..100 {
            if rows::databases(&run).len() == 2 {
                break;
            }
            thread::sleep(Duration::from_millis(50)); // the launcher came back before the other rank was dead
            report = lapscope(["report".as_ref(), run.as_os_str()]);
        }
        assert!(report.contains("died") || report.contains("killed"), "{report}");
        check_rows(mpi, &run, ["killed", "killed"]);
    }
}

/// Killed at instants that nobody chose: every round that the program saw complete is there.
#[test]
fn at_any_instant() {
    for attempt in 0..6 {
        for mpi in mpis!(attempt) {
            let place = place();
            let counter = place.path().join("counter");
            let microseconds = (20_000 + attempt * 17_389).to_string();
            let job = Job::new(mpi, 1, build::app(mpi, "endless"), Form::Preload, place.path())
                .args([counter.as_os_str(), microseconds.as_ref()]);
            assert_ne!(job.run().code, 0);
            let bytes = fs::read(&counter).expect("the counter");
            let complete = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
            assert!(complete > 0);

            let run = job.run_directory();
            recover(&run);
            let database = rows::open(&run.join("rank-0.db"));
            assert_eq!(invariants::check_of_killed(&database), Ok(()));
            for kind in ["send", "recv"] {
                let query = format!(
                    "SELECT count(*) FROM requests WHERE kind = '{kind}' AND ended = 'waited'"
                );
                let recorded: u64 = rows::value(&database, &query).parse().expect("a count");
                assert!(
                    (complete..=complete + 1).contains(&recorded),
                    "{}: {recorded} of {complete}",
                    mpi.name
                );
            }
            let pending =
                rows::value(&database, "SELECT count(*) FROM request WHERE completion_id IS NULL");
            assert!(["0", "1", "2"].contains(&&*pending), "{pending} pending");
        }
    }
}

/// On stacks that have hardly room for what MPI itself does there.
#[test]
fn ends_on_a_small_stack() {
    for (turn, (how, ended)) in
        [("exit", "exit"), ("abort", "abort"), ("thread", "exit")].into_iter().enumerate()
    {
        for mpi in mpis!(turn) {
            let (app, bare_place, place) =
                (build::app(mpi, "ends_on_small_stack"), place(), place());
            let job = |form, place| Job::new(mpi, 1, &app, form, place).args([how]);
            let bare = end_of(&job(Form::Bare, bare_place.path()));
            let with = job(Form::Preload, place.path());
            let directory = with.run_directory();
            let with = end_of(&with);
            let differences = outcome_differences(&bare, &with);
            assert!(differences.is_empty(), "{} {how}: {differences:#?}", mpi.name);
            let database = rows::open(&directory.join("rank-0.db"));
            let found = rows::value(&database, "SELECT ended FROM rank");
            assert_eq!(found, ended, "{} {how}", mpi.name);
        }
    }
}
