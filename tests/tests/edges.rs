//! What of a process is the program's own stays so: descriptors, memory, stacks.

use std::path::Path;

use lapscope_tests::answer::{ask, rows, text};
use lapscope_tests::build;
use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::mpi::Mpi;

/// Every free number is the program's, at each new call path.
#[test]
fn descriptors_stay_whose_they_are() {
    for mpi in mpis!() {
        let app = build::app(mpi, "own_descriptors");
        let bare =
            same(mpi, Form::Preload, |form, place| Job::new(mpi, 1, &app, form, place).run());
        assert!(bare.stdout.ends_with("\n0 bytes\n"), "{}: {bare:?}", mpi.name);
    }
}

/// What came of a run that does and prints the same with lapscope.
fn same(mpi: &Mpi, form: Form, run: impl Fn(Form, &Path) -> Outcome) -> Outcome {
    let (bare_place, place) = (place(), place());
    let bare = run(Form::Bare, bare_place.path());
    assert_eq!(bare.code, 0, "{}: {bare:?}", mpi.name);
    let differences = outcome_differences(&bare, &run(form, place.path()));
    assert!(differences.is_empty(), "{}: {differences:#?}", mpi.name);
    bare
}

fn assert_same(mpi: &Mpi, binary: &Path, arguments: &[&Path], prints: &str) {
    let bare = same(mpi, Form::Preload, |form, place| {
        Job::new(mpi, 1, binary, form, place).args(arguments).run()
    });
    assert_eq!(&*bare.stdout, prints, "{}: {bare:?}", mpi.name);
}

/// Many stacks that are no thread's.
#[test]
fn coroutines() {
    for mpi in mpis!() {
        assert_same(mpi, &build::app(mpi, "coroutines"), &[], "2000 of 2000\n");
    }
}

/// Our own descriptors are among those that the program closes and puts its own file on.
#[test]
fn descriptors_that_the_program_closes() {
    for mpi in mpis!() {
        let app = build::app(mpi, "closed_descriptors");
        assert_same(mpi, &app, &[], "0 bytes, 800 of 800 numbers\n");
    }
}

#[test]
fn processes_that_share_memory() {
    for mpi in mpis!() {
        let app = build::app(mpi, "starts_programs");
        assert_same(mpi, &app, &[], "4 4 3, wrote 17, arrived 1\n");
    }
}

#[test]
fn libraries_that_call_past_us_or_before_main() {
    for mpi in mpis!() {
        let library = build::library(mpi, "posts_past_library");
        assert_same(mpi, &build::app(mpi, "posts_past"), &[&library], "50 of 50\n");
        let library = build::library(mpi, "early_library");
        let app = build::app_with(mpi, "early", &[&library.to_string_lossy()]);
        assert_same(mpi, &app, &[], "1, 1\n");
    }
}

/// A run directory with a relative name lies where the programs began: in one place, and none of theirs.
#[test]
fn programs_that_work_elsewhere() {
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let app = build::app(mpi, "elsewhere");
        let bare = Job::new(mpi, 2, &app, Form::Bare, bare_place.path()).run();
        assert_eq!(bare.stdout, "0 entries, removed\n".repeat(2), "{}: {bare:?}", mpi.name);
        let job = Job::new(mpi, 2, &app, Form::Preload, place.path()).env("LAPSCOPE_DIR", "run");
        let with = job.run();
        let differences = outcome_differences(&bare, &with);
        assert!(differences.is_empty(), "{}: {differences:#?}", mpi.name);
        let files = |name| job.run_directory().join(name).exists();
        assert!(files("rank-0.db") && files("rank-1.db"), "{}", mpi.name);
    }
}

/// gcc's runtime of the address sanitizer.
#[test]
fn programs_with_a_sanitizer() {
    for mpi in mpis!() {
        let app = build::app_with(mpi, "sanitized", &["-fsanitize=address"]);
        same(mpi, Form::Outer, |form, place| {
            Job::new(mpi, 2, &app, form, place).env("ASAN_OPTIONS", "detect_leaks=0").run()
        });
    }
}

/// What is asked by dlsym is answered as without us: that Fortran's functions are not there, or those that its library has.
#[test]
fn manglings_that_the_process_has() {
    for mpi in mpis!() {
        let app = build::app_with(mpi, "manglings", &["-ldl"]);
        same(mpi, Form::Preload, |form, place| Job::new(mpi, 1, &app, form, place).run());
    }
}

/// Functions of the program that are called as the C library's.
#[test]
fn names_that_are_the_programs_own() {
    for mpi in mpis!() {
        let app = build::app_with(mpi, "own_names", &["-rdynamic", "-fno-builtin", "-ldl"]);
        assert_same(mpi, &app, &[], "lapscope called:\n");
    }
}

#[test]
fn floating_point_flags() {
    for mpi in mpis!() {
        assert_same(
            mpi,
            &build::app_with(mpi, "floating_point", &["-lm"]),
            &[],
            "raised in 0 rounds\n",
        );
    }
}

/// What MPI refuses, or crashes of, it does with lapscope, too.
#[test]
fn places_that_are_not_given() {
    for mpi in mpis!() {
        let app = build::app(mpi, "null_flags");
        for case in share!(0, (0..6).collect::<Vec<_>>()) {
            let run = |form| {
                let place = place();
                let job = Job::new(mpi, 1, &app, form, place.path()).args([case.to_string()]);
                let outcome = job.run();
                (outcome.code, outcome.stdout.contains("an error")) // a launcher names processes that crash
            };
            assert_eq!(run(Form::Bare), run(Form::Preload), "{}, {case}", mpi.name);
        }
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
        let cut = problems.filter(|problem| text(problem, "kind") == "cut_paths");
        let said: Vec<&str> = cut.map(|problem| text(problem, "message")).collect();
        assert!(
            said.len() == 1 && said[0].contains(": search endless_paths.c:"),
            "{}: {said:?}",
            mpi.name
        );
    }
}

/// What is kept of a thread for injection, watching or counting ends with it, or serves the next.
#[test]
fn threads_that_have_ended_keep_nothing() {
    let ways = [
        vec![("LAPSCOPE_INJECT", "timer"), ("LAPSCOPE_INJECT_CLOCK", "cputime")],
        vec![("LAPSCOPE_REACH", "on"), ("LAPSCOPE_CPU_TIME", "on"), ("LAPSCOPE_INJECT", "timer")],
        vec![("LAPSCOPE_INJECT", "thread"), ("LAPSCOPE_COUNTERS", "perf::TASK-CLOCK")],
        vec![("LAPSCOPE_INJECT", "auto")],
        vec![],
    ];
    for mpi in mpis!() {
        let app = build::app(mpi, "task_threads");
        for way in &ways {
            let place = place();
            let mut job = Job::new(mpi, 1, &app, Form::Preload, place.path());
            for (name, value) in [&way[..], &[("LAPSCOPE_INJECT_INTERVAL_US", "50")]].concat() {
                job = job.env(name, value);
            }
            let outcome = job.run();
            let expected = (0, "0 descriptors more, memory bounded\n");
            assert_eq!(
                (outcome.code, &*outcome.stdout),
                expected,
                "{}, {way:?}: {outcome:?}",
                mpi.name
            );
        }
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
