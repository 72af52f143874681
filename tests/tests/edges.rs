//! What of a process is the program's own stays so: descriptors, memory, stacks.

use lapscope_tests::answer::{ask, rows, text};
use lapscope_tests::build;
use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, Form, Job, Outcome};

/// Every free number is the program's, at each new call path.
#[test]
fn descriptors_stay_whose_they_are() {
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let app = build::app(mpi, "own_descriptors");
        let bare = Job::new(mpi, 1, &app, Form::Bare, bare_place.path()).run();
        assert!(bare.code == 0 && bare.stdout.ends_with("\n0 bytes\n"), "{}: {bare:?}", mpi.name);
        let with = Job::new(mpi, 1, &app, Form::Preload, place.path()).run();
        let differences = outcome_differences(&bare, &with);
        assert!(differences.is_empty(), "{}: {differences:#?}", mpi.name);
    }
}

/// Paths that vary without end take the memory that they may, and the report says which calls have none.
#[test]
fn call_paths_are_bounded() {
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let app = build::app(mpi, "endless_paths");
        let job =
            |form, place| Job::new(mpi, 1, &app, form, place).env("LAPSCOPE_CALLPATH_MB", "2");
        let bare = job(Form::Bare, bare_place.path()).run();
        assert_eq!((bare.code, &*bare.stdout), (0, "bounded\n"), "{}: {bare:?}", mpi.name);
        let with = job(Form::Preload, place.path());
        let directory = with.run_directory();
        let with = with.run();
        assert_eq!((with.code, &with.stdout), (0, &bare.stdout), "{}: {with:?}", mpi.name);
        assert!(with.said.iter().any(|line| line.contains("vary without end")), "{with:?}");
        let report = ask("report", &directory);
        let problems = rows(&report, "problems").iter();
        let kinds: Vec<&str> = problems.map(|problem| text(problem, "kind")).collect();
        assert!(kinds.contains(&"cut_paths"), "{}: {kinds:?}", mpi.name);
    }
}

/// What a call takes of a small stack beside what MPI takes itself.
#[test]
fn stacks_may_be_small() {
    const MOST: u64 = 4096;
    let bytes = |outcome: &Outcome| -> Vec<u64> {
        let last = |line: &str| line.rsplit_once(' ').and_then(|(_, bytes)| bytes.parse().ok());
        outcome.stdout.lines().filter_map(last).collect()
    };
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let app = build::app(mpi, "stack_use");
        let bare = Job::new(mpi, 1, &app, Form::Bare, bare_place.path()).run();
        let with = Job::new(mpi, 1, &app, Form::Preload, place.path()).run();
        assert_eq!((bare.code, with.code), (0, 0), "{}: {bare:?}, {with:?}", mpi.name);
        let (bare, with) = (bytes(&bare), bytes(&with));
        assert_eq!((bare.len(), with.len()), (8, 8), "{}", mpi.name);
        let is_little = bare.iter().zip(&with).all(|(bare, with)| *with <= bare + MOST);
        assert!(is_little, "{}: {bare:?} and with lapscope {with:?}", mpi.name);
    }
}
