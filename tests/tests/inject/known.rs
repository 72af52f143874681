//! The programs of `tests/apps` whose rows are known, and mpi4py's own tests.

use std::time::Duration;

use lapscope_tests::build::Binding;
use lapscope_tests::differential::{app_differences, fortran_differences, script_differences, Way};
use lapscope_tests::launch::Form;
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::suite::{self, Selection};
use lapscope_tests::torture::Mode;
use lapscope_tests::{paths, rows};

/// Programs that an MPI does not get through once it was asked for `MPI_THREAD_MULTIPLE`, by lapscope or by a variable of its own.
const NOT_WITH_THREADS: &[(&str, &str, &str)] = &[
    ("errors_return", "openmpi4", "hangs in MPI_Waitall when a request has failed"),
    ("error_jump", "mpich", "is locked for ever when the error handler jumps out of it"),
];

/// Programs that have expectations: name and ending.
fn programs() -> Vec<(String, String)> {
    rows::files(&paths::apps())
        .iter()
        .filter(|path| path.with_extension("expect").exists())
        .filter_map(|path| {
            let end = path.extension()?.to_string_lossy().into_owned();
            Some((path.file_stem()?.to_string_lossy().into_owned(), end))
        })
        .filter(|(_, end)| end != "expect")
        .collect()
}

/// Those of the ways in which the program can be run at all.
fn possible<'a>(ways: &[Way<'a>], mpi: &Mpi, name: &str) -> Vec<Way<'a>> {
    let obstacle = NOT_WITH_THREADS
        .iter()
        .find(|(program, word, _)| *program == name && mpi.words.contains(word));
    let with_threads = |way: &Way| way.1.contains(&("LAPSCOPE_INJECT", "thread"));
    if let Some((_, _, reason)) = obstacle {
        lapscope_tests::say!("NOT TESTED: {name} under {} with threads: it {reason}", mpi.name);
    }
    ways.iter().copied().filter(|way| obstacle.is_none() || !with_threads(way)).collect()
}

/// What differs of one program, each by one binding that it can be built with.
fn differences(mpi: &Mpi, name: &str, end: &str, ways: &[Way]) -> Vec<String> {
    match (end, name) {
        ("c", _) => app_differences(mpi, name, ways),
        ("f90", "fortran_large" | "fortran_subarrays") => {
            fortran_differences(mpi, name, Binding::F08, &[], ways)
        }
        ("f90", _) => fortran_differences(mpi, name, Binding::Header, &[], ways),
        ("py", _) if paths::python(mpi.name).exists() => script_differences(mpi, name, ways),
        ("py", _) => Vec::new(),
        _ => panic!("what is {name}.{end}?"),
    }
}

/// A program, its ending, and an MPI.
type Pair = (String, String, &'static Mpi);

/// Each program with each MPI of those numbers that `which` adds to its own.
fn pairs(which: impl Fn(usize) -> Vec<usize>) -> Vec<Pair> {
    let mpis = mpi::all();
    let with = |(index, (name, end)): (usize, (String, String))| {
        let chosen = which(mpis.len()).into_iter();
        chosen
            .map(move |more| (name.clone(), end.clone(), mpis[(index + more) % mpis.len()]))
            .collect::<Vec<_>>()
    };
    programs().into_iter().enumerate().flat_map(with).collect()
}

/// Output and rows are those without injection.
fn check(modes: &[Mode], pairs: Vec<Pair>) {
    let options: Vec<_> = modes.iter().map(|mode| mode.options()).collect();
    let ways: Vec<Way> = options.iter().map(|options| (Form::Preload, &options[..])).collect();
    assert!(!pairs.is_empty());
    let mut found = Vec::new();
    for (name, end, mpi) in pairs {
        let differences = differences(mpi, &name, &end, &possible(&ways, mpi, &name));
        found.extend(differences.iter().map(|text| format!("{name}: {text}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Every program under one MPI.
#[test]
fn rows_of_a_share() {
    for (turn, mode) in [Mode::Timer, Mode::Thread].into_iter().enumerate() {
        check(&[mode], share!(turn, pairs(|_| vec![0])));
    }
}

/// Every program under two MPIs with words of their buffers watched.
#[test]
fn rows_with_watches() {
    check(&[Mode::Reach], share!(1, pairs(|mpis| vec![1, 1 + mpis / 2])));
}

/// Every program under two MPIs with samples taken of it, by each of the ways.
#[test]
fn rows_with_samples() {
    check(&[Mode::Sample], share!(2, pairs(|mpis| vec![0, mpis / 2])));
}

/// Every program under every MPI with their sends copied.
#[test]
fn rows_with_copied_sends() {
    check(&[Mode::Sends], share!(2, pairs(|mpis| (0..mpis).collect())));
}

#[test]
#[ignore = "an hour"]
fn rows_in_full() {
    let modes = [Mode::Calls, Mode::Timer, Mode::Thread, Mode::Auto, Mode::Reach, Mode::Sends];
    check(&modes, pairs(|mpis| (0..mpis).collect()));
}

/// Options for mpi4py's tests of what goes on while requests are pending.
fn modules_of_requests() -> Vec<&'static str> {
    let all = vec!["test_p2p_buf", "test_cco_nb", "test_cco_pr", "request", "test_rma_nb"];
    share!(all).into_iter().flat_map(|module| ["-i", module]).collect()
}

fn check_suite(modules: &[&str], modes: &[Mode], mpis: &[&Mpi], limit: Duration) {
    if !suite::is_there() {
        return;
    }
    let jobs = mpis.iter().flat_map(|mpi| modes.iter().map(move |mode| (mpi, mode)));
    let found: Vec<String> = jobs
        .filter_map(|(mpi, mode)| {
            let selection = Selection { ranks: 2, modules, options: &mode.options(), limit };
            suite::check(mpi, &selection).err()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn tests_of_mpi4py() {
    let mut mpis = mpi::with_python();
    mpis.retain(|mpi| ["openmpi", "mpich"].contains(&mpi.name));
    let modes = [Mode::Timer, Mode::Thread].into_iter();
    let pairs = modes.flat_map(|mode| mpis.iter().map(move |&mpi| (mode, mpi))).collect();
    for (mode, mpi) in share!(0, pairs) {
        check_suite(&modules_of_requests(), &[mode], &[mpi], Duration::from_secs(120));
    }
}

const MOST_MODULES: [&str; 4] = ["-e", "test_datatype", "-e", "test_spawn"];

/// All but the longest of them, under every MPI, with words of buffers watched.
#[test]
fn tests_of_mpi4py_with_watches() {
    if !is_left_out!() {
        let limit = Duration::from_secs(600);
        check_suite(&MOST_MODULES, &[Mode::Reach], &mpi::with_python(), limit);
    }
}

/// The same with sends copied.
#[test]
fn tests_of_mpi4py_with_copied_sends() {
    if !is_left_out!() {
        let limit = Duration::from_secs(600);
        check_suite(&MOST_MODULES, &[Mode::Sends], &mpi::with_python(), limit);
    }
}

#[test]
#[ignore = "an hour"]
fn tests_of_mpi4py_in_full() {
    let modes = [
        Mode::Calls,
        Mode::Timer,
        Mode::Thread,
        Mode::Auto,
        Mode::ReachAndTimer,
        Mode::SendsAndTimer,
    ];
    check_suite(&MOST_MODULES, &modes, &mpi::with_python(), Duration::from_secs(600));
}
