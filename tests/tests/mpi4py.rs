//! Python programs, which load their MPI late and with local scope, and mpi4py's own tests.

use std::time::Duration;

use lapscope_tests::differential::check_script;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::suite::{self, Selection};
use lapscope_tests::{paths, rows};

#[test]
fn messages_and_collectives() {
    check_script(&share!(mpi::with_python()), "python_exchange", &[Form::Preload]);
}

#[test]
fn mpi_loaded_inside_a_function() {
    check_script(&share!(mpi::with_python()), "python_late", &[Form::Preload]);
}

#[test]
fn functions_asked_for_by_handle() {
    check_script(&share!(mpi::with_python()), "python_by_handle", &[Form::Preload]);
}

#[test]
fn under_lapscope_run() {
    check_script(&share!(mpi::with_python()), "python_exchange", &[Form::Outer, Form::Inner]);
}

/// Interruptions are refused where the executable brings a malloc that they might find at work. Debian's Python is linked at a
/// fixed address and takes the address of malloc, as if it brought one.
#[test]
fn tests_are_injected_by_a_timer() {
    for mpi in share!(mpi::with_python()) {
        let place = place();
        let job = Job::new(mpi, 2, paths::python(mpi.name), Form::Preload, place.path())
            .args([paths::apps().join("python_exchange.py")])
            .env("LAPSCOPE_INJECT", "timer");
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
        let databases = rows::databases(&job.run_directory());
        assert_eq!(databases.len(), 2, "{}: {outcome:?}", mpi.name);
        for database in databases {
            let sql = "SELECT mode || ': ' || coalesce(problem, 'fine') FROM injector";
            assert_eq!(rows::value(&rows::open(&database), sql), "timer: fine", "{}", mpi.name);
        }
    }
}

fn check_suite(mpis: &[&Mpi], ranks: &[u32], modules: &[&str], limit: Duration) {
    if !suite::is_there() {
        return;
    }
    let jobs = ranks.iter().flat_map(|&ranks| mpis.iter().map(move |mpi| (mpi, ranks)));
    let found: Vec<String> = jobs
        .filter_map(|(mpi, ranks)| {
            let selection = Selection { ranks, modules, options: &[], limit };
            suite::check(mpi, &selection).err()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// The ranks that `LAPSCOPE_TEST_RANKS=1,3` names, or these.
fn ranks_or(usual: &str) -> Vec<u32> {
    let named = std::env::var("LAPSCOPE_TEST_RANKS").unwrap_or_else(|_| usual.to_owned());
    named.split(',').filter_map(|rank| rank.parse().ok()).collect()
}

/// All but those of datatypes, which communicate nothing and take longer than the rest together, and those of spawning,
/// which take nearly as long.
fn modules_on_two_ranks() -> Vec<String> {
    let is_left_out = |name: &String| ["test_datatype.py", "test_spawn.py"].contains(&&name[..]);
    share!(suite::modules().into_iter().filter(|name| !is_left_out(name)).collect())
}

#[test]
fn own_tests_on_two_ranks() {
    let modules = modules_on_two_ranks();
    let options: Vec<&str> = modules.iter().flat_map(|name| ["-i", name]).collect();
    check_suite(&share!(mpi::with_python()), &ranks_or("2"), &options, Duration::from_secs(240));
}

/// All of them: `make mpi4py-suite`, half an hour.
#[test]
#[ignore = "half an hour: make mpi4py-suite"]
fn own_tests_in_full() {
    check_suite(&mpi::with_python(), &ranks_or("1,2,3"), &[], Duration::from_secs(1200));
}
