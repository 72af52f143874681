//! The programs of `tests/apps` whose rows are known, and mpi4py's own tests.

use std::time::Duration;

use lapscope_tests::build::Binding;
use lapscope_tests::differential::{app_differences, fortran_differences, script_differences, Way};
use lapscope_tests::launch::Form;
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::suite::{self, Selection};
use lapscope_tests::torture::Mode;
use lapscope_tests::{paths, rows, share};

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

/// Output and rows are those without injection, for the programs and MPIs of these numbers.
fn check(modes: &[Mode], is_chosen: impl Fn(usize, usize) -> bool) {
    let options: Vec<_> = modes.iter().map(|mode| mode.options()).collect();
    let ways: Vec<Way> = options.iter().map(|options| (Form::Preload, &options[..])).collect();
    let (mut found, mut count) = (Vec::new(), 0);
    for (number, mpi) in mpi::all().iter().enumerate() {
        for (index, (name, end)) in programs().iter().enumerate() {
            if is_chosen(index, number) {
                count += 1;
                let ways = possible(&ways, mpi, name);
                let differences = differences(mpi, name, end, &ways);
                found.extend(differences.iter().map(|text| format!("{name}: {text}")));
            }
        }
    }
    assert!(found.is_empty() && count > 0, "{}", found.join("\n\n"));
}

/// Every program under one MPI, those in turn; in `make check` in one of the modes, each.
#[test]
fn rows_of_a_share() {
    let mpis = mpi::all().len();
    let all = share::includes("rows of all programs with both modes of injection");
    for (turn, mode) in [Mode::Timer, Mode::Thread].into_iter().enumerate() {
        check(&[mode], |program, mpi| program % mpis == mpi && (all || program / mpis % 2 == turn));
    }
}

/// A few programs under every MPI with words of their buffers watched; in `make check-all` every program under two of them.
#[test]
fn rows_with_watches() {
    let mpis = mpi::all().len();
    let all = share::includes("rows of most programs with words of buffers watched");
    check(&[Mode::Reach], |program, mpi| {
        (program + 1) % mpis == mpi && program / mpis % 4 == 0 || all && (program + mpi) % 3 == 0
    });
}

/// A few programs under every MPI with their sends copied; in `make check-all` every program under every MPI.
#[test]
fn rows_with_copied_sends() {
    let mpis = mpi::all().len();
    let all = share::includes("rows of most programs with their sends copied");
    check(&[Mode::Sends], |program, mpi| {
        all || (program + 2) % mpis == mpi && program / mpis % 4 == 1
    });
}

#[test]
#[ignore = "an hour"]
fn rows_in_full() {
    let modes = [Mode::Calls, Mode::Timer, Mode::Thread, Mode::Auto, Mode::Reach, Mode::Sends];
    check(&modes, |_, _| true);
}

/// mpi4py's tests of what goes on while requests are pending.
const MODULES: &[&str] = &[
    "-i",
    "test_p2p_buf",
    "-i",
    "test_cco_nb",
    "-i",
    "test_cco_pr",
    "-i",
    "request",
    "-i",
    "test_rma_nb",
];

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
    let all = share::includes("mpi4py's tests with both modes of injection");
    for (name, turn) in [("openmpi", Mode::Timer), ("mpich", Mode::Thread)] {
        let chosen = |mode: &Mode| all || *mode == turn;
        let modes: Vec<Mode> = [Mode::Timer, Mode::Thread].into_iter().filter(chosen).collect();
        let mpis: Vec<&Mpi> =
            mpi::with_python().into_iter().filter(|mpi| mpi.name == name).collect();
        check_suite(MODULES, &modes, &mpis, Duration::from_secs(120));
    }
}

const MOST_MODULES: [&str; 4] = ["-e", "test_datatype", "-e", "test_spawn"];

/// All but the longest of them, under every MPI, with words of buffers watched.
#[test]
fn tests_of_mpi4py_with_watches() {
    if share::includes("mpi4py's tests with words of buffers watched") {
        let limit = Duration::from_secs(600);
        check_suite(&MOST_MODULES, &[Mode::Reach], &mpi::with_python(), limit);
    }
}

/// The same with sends copied.
#[test]
fn tests_of_mpi4py_with_copied_sends() {
    if share::includes("mpi4py's tests with their sends copied") {
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
