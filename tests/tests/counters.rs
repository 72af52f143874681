//! What is counted over calls and while requests are under way: with events of the program's own, whose values are known.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, recover, Form, Job, Outcome};
use lapscope_tests::mpi::Mpi;
use lapscope_tests::{build, invariants, rows};

const WORK: &str = "sde:::app::WORK";

fn program(mpi: &Mpi) -> PathBuf {
    build::app_with(mpi, "counters", &["-lsde"])
}

fn job<'a>(mpi: &'a Mpi, form: Form, place: &'a Path, events: &str) -> Job<'a> {
    Job::new(mpi, 2, program(mpi), form, place).env("LAPSCOPE_COUNTERS", events)
}

/// "MPI_Isend 107, ...": names and values in the order of the rows.
fn values(database: &rusqlite::Connection, name: &str, rows_from: &str) -> String {
    let query = format!(
        "SELECT ifnull(group_concat(line, ', '), '') FROM (SELECT {name} || ' ' || value AS line {rows_from})"
    );
    rows::value(database, &query)
}

/// What the loader is to search: that directory before what the MPI needs.
fn library_path(mpi: &Mpi, directory: &Path) -> OsString {
    let of_mpi = mpi.environment.iter().filter(|(name, _)| *name == "LD_LIBRARY_PATH");
    let paths = of_mpi.map(|(_, path)| PathBuf::from(path));
    std::env::join_paths(std::iter::once(directory.to_owned()).chain(paths))
        .expect("no colon in them")
}

/// The values of one counter: those of `counters.c` for the event of its own.
fn check_values(database: &rusqlite::Connection, number: u32) {
    let requests = values(
        database,
        "r.call",
        &format!(
            "FROM request_counter JOIN requests r ON r.id = request_id WHERE number = {number}
             ORDER BY r.post_begin_ns"
        ),
    );
    assert_eq!(
        requests,
        "MPI_Irecv 117, MPI_Isend 107, MPI_Irecv 217, MPI_Isend 207, MPI_Irecv 317, MPI_Isend 307"
    );
    let calls = values(
        database,
        "call",
        &format!(
            "FROM call_counter JOIN calls ON id = call_row_id WHERE number = {number} AND value <> 0
             ORDER BY begin_ns"
        ),
    );
    assert_eq!(calls, "MPI_Comm_dup 1000, MPI_Comm_dup 1000, MPI_Comm_dup 1000");
    // each call has its value, but for the one that started MPI and those under way at the end
    let without = "SELECT count(*) FROM calls LEFT JOIN call_counter ON call_row_id = id
                   WHERE call_row_id IS NULL AND call <> 'MPI_Init_thread' AND duration_ns IS NOT NULL";
    assert_eq!(rows::value(database, without), "0");
    let of_thread = "SELECT count(*) FROM requests LEFT JOIN request_counter ON request_id = id
                     WHERE request_id IS NULL AND mpi_ns IS NULL AND tag = 5";
    assert_eq!(rows::value(database, of_thread), "1");
}

/// Outside of MPI in the whole run: 10 + 100 × i + 7 + 50000 in round i of three. Then another thread starts to count, and for PAPI an
/// event of the program's own, which is no thread's, begins anew: it goes back by that and the 1000 within MPI of each round.
fn check_sum(database: &rusqlite::Connection, number: u32) {
    let outside = 3 * 50_017 + 600;
    let sums = "SELECT group_concat(number || ' ' || outside) FROM counter_sum";
    let expected = format!("{number} {}", outside - (outside + 3 * 1000));
    assert_eq!(rows::value(database, sums), expected);
}

fn databases(run: &Path) -> Vec<rusqlite::Connection> {
    let databases: Vec<_> = rows::databases(run).iter().map(|path| rows::open(path)).collect();
    assert_eq!(databases.len(), 2, "{:?}", rows::files(run));
    databases
}

fn assert_unharmed(bare: &Outcome, with: &Outcome) {
    assert_eq!(bare.code, 0, "{}", bare.stderr);
    let differences = outcome_differences(bare, with);
    assert!(differences.is_empty(), "{}\n{:#?}", differences.join("\n"), with.said);
}

#[test]
fn values_are_exact_and_an_event_that_is_missing_is_named() {
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let bare = job(mpi, Form::Bare, bare_place.path(), "").run();
        let job = job(mpi, Form::Preload, place.path(), &format!("no_such::EVENT,{WORK}"));
        let with = job.run();
        assert_unharmed(&bare, &with);
        let named: Vec<_> =
            with.said.iter().filter(|line| line.contains("no_such::EVENT")).collect();
        assert_eq!(named.len(), 1, "{}: {:#?}", mpi.name, with.said);
        for database in databases(&job.run_directory()) {
            assert_eq!(invariants::check(&database), Ok(()), "{}", mpi.name);
            let problem =
                "SELECT problem FROM counter WHERE number = 0 AND name = 'no_such::EVENT'";
            assert!(!matches!(rows::value(&database, problem).as_str(), "" | "NULL"));
            let counter = "SELECT name || '|' || description || '|' || unit FROM counter WHERE problem IS NULL";
            assert_eq!(rows::value(&database, counter), format!("{WORK}|items of work|"));
            assert_eq!(
                rows::value(&database, "SELECT count(*) FROM call_counter WHERE number <> 1"),
                "0"
            );
            check_values(&database, 1);
            check_sum(&database, 1);
        }
    }
}

#[test]
fn what_killed_ranks_had_counted_is_kept() {
    for mpi in mpis!() {
        let place = place();
        let job = job(mpi, Form::Preload, place.path(), WORK).args(["die"]);
        assert_ne!(job.run().code, 0);
        recover(&job.run_directory());
        for database in databases(&job.run_directory()) {
            assert_eq!(invariants::check_of_killed(&database), Ok(()), "{}", mpi.name);
            check_values(&database, 0);
        }
    }
}

/// CPU time: of every call that was seen to begin and to end; neither part negative, and together some.
#[test]
fn user_and_system_time() {
    for mpi in mpis!() {
        let place = place();
        let job = job(mpi, Form::Preload, place.path(), "").env("LAPSCOPE_CPU_TIME", "on");
        assert_eq!(job.run().code, 0);
        for database in databases(&job.run_directory()) {
            let wrong = "SELECT count(*) FROM calls WHERE call <> 'MPI_Init_thread'
                         AND NOT ifnull(user_ns >= 0 AND system_ns >= 0 AND user_ns + system_ns > 0, 0)";
            assert_eq!(rows::value(&database, wrong), "0", "{}", mpi.name);
            assert_eq!(rows::value(&database, "SELECT count(*) FROM counter"), "0");
        }
    }
}

/// Without a library of PAPI the run goes on, and says so.
#[test]
fn without_papi() {
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let bare = job(mpi, Form::Bare, bare_place.path(), "").run();
        let directory = place.path().join("not-papi");
        std::fs::create_dir(&directory).expect("a directory");
        for version in ["7.2", "7.1", "7.0", "7", "6.0", "6", "5.7"] {
            std::fs::write(directory.join(format!("libpapi.so.{version}")), "").expect("a file");
        }
        std::fs::write(directory.join("libpapi.so"), "").expect("a file");
        let job = job(mpi, Form::Preload, place.path(), WORK)
            .env("LD_LIBRARY_PATH", library_path(mpi, &directory));
        let with = job.run();
        assert_unharmed(&bare, &with);
        let told = with.said.iter().filter(|line| line.contains("libpapi.so is not found"));
        assert_eq!(told.count(), 1, "{}: {:#?}", mpi.name, with.said);
        for database in databases(&job.run_directory()) {
            let counters = "SELECT count(*) || ' ' || count(problem) FROM counter";
            assert_eq!(rows::value(&database, counters), "1 1");
        }
    }
}
