//! Processes that spawn others: all write into one run directory, each world with names of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::launch::{lapscope, place, recover, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, invariants, rows, trials};

/// MPIs whose MPI_Comm_spawn fails, whatever runs: Debian's MPICH 4.0.2 reports "Error in spawn call".
const CANNOT_SPAWN: &[&str] = &["mpich"];

/// What the processes of `worlds_tree.c` were started as, world by world: command line arguments and their ranks.
const WORLDS: &[&[(&str, usize)]] = &[
    &[("", 2)],
    &[("branch", 2)],
    &[("leaf", 1)],
    &[("multiple-a", 1), ("multiple-b", 2)],
    &[("of-0", 2)],
    &[("of-1", 2)],
];

fn job<'a>(mpi: &'a Mpi, app: &str, form: Form, place: &'a Path) -> Job<'a> {
    let app = build::app(mpi, app);
    // What MPIs need for spawning: Intel's a word; MPICH 5 over UCX a way to reach processes that end soon
    Job::new(mpi, 2, app, form, place)
        .env("I_MPI_SPAWN", "on")
        .env("UCX_TLS", "self,tcp")
        .env("UCX_LOG_LEVEL", "fatal")
}

fn spawning() -> Vec<&'static Mpi> {
    let (able, unable): (Vec<&Mpi>, Vec<&Mpi>) =
        mpi::all().iter().partition(|mpi| !CANNOT_SPAWN.contains(&mpi.name));
    for mpi in unable {
        lapscope_tests::say!("NOT TESTED under {}: its MPI_Comm_spawn fails", mpi.name);
    }
    able
}

/// The ranks of each world as they were started, and that each of them is there, once, whole.
fn worlds(run: &Path) -> Vec<Vec<(String, usize)>> {
    let mut ranks: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    let mut sizes = BTreeMap::new();
    let mut started: BTreeMap<i64, BTreeMap<String, usize>> = BTreeMap::new();
    for path in rows::databases(run) {
        let database = rows::open(&path);
        assert_eq!(invariants::check(&database), Ok(()), "{}", path.display());
        let number = |column: &str| -> i64 {
            rows::value(&database, &format!("SELECT {column} FROM rank")).parse().expect("a number")
        };
        let (world, rank) = (number("world"), number("world_rank"));
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let expected = if world == 1 {
            format!("rank-{rank}.db")
        } else {
            format!("world-{world}-rank-{rank}.db")
        };
        assert_eq!(name, expected);
        assert!(ranks.entry(world).or_default().insert(rank), "{world}:{rank} is there twice");
        sizes.insert(world, number("world_size"));
        let command = rows::value(&database, "SELECT command FROM rank");
        let argument = command.split_once(' ').map_or("", |(_, argument)| argument).to_owned();
        *started.entry(world).or_default().entry(argument).or_default() += 1;
        assert_eq!(
            rows::value(&database, "SELECT ended || unknown_requests FROM rank"),
            "finalize0"
        );
    }
    for (world, ranks) in &ranks {
        assert_eq!(
            ranks.iter().copied().collect::<Vec<_>>(),
            (0..sizes[world]).collect::<Vec<_>>()
        );
    }
    let mut worlds: Vec<Vec<_>> =
        started.into_values().map(|started| started.into_iter().collect()).collect();
    worlds.sort();
    worlds
}

fn check_report(run: &Path) {
    let printed =
        lapscope(["report".as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(report["head"]["worlds"].as_array().map(Vec::len), Some(WORLDS.len()), "{printed}");
    let names: BTreeSet<String> = report["ranks"]
        .as_array()
        .expect("ranks")
        .iter()
        .map(|rank| rank["rank"].to_string())
        .collect();
    let ranks: usize = WORLDS.iter().flat_map(|world| world.iter()).map(|(_, ranks)| ranks).sum();
    assert_eq!(names.len(), ranks, "{names:?}");
    assert!(names.contains("0") && names.contains("\"2:0\""), "{names:?}");
    let problems = report["problems"].as_array().expect("problems");
    let is_other = |problem: &&Value| problem["kind"] != "starved"; // ten ranks on this machine
    assert_eq!(problems.iter().find(is_other), None, "{problems:#?}");
}

/// Open MPI 4.1.4 over PMIx 4.2.2 hangs now and then: of 56 runs of `worlds_tree` without lapscope on a busy machine six did,
/// each with one spawned process in PMIx_Init, its sibling in MPI_Init and the parent in PMIx_Lookup. Such a launch is made again.
#[test]
fn spawned_processes_write_beside_their_parents() {
    for mpi in share!(spawning()) {
        let bare_place = place();
        let bare = job(mpi, "worlds_tree", Form::Bare, bare_place.path()).run();
        assert_eq!((bare.code, bare.stdout.lines().count()), (0, 1), "{}: {bare:?}", mpi.name);
        for form in [Form::Preload, Form::Outer] {
            let place = place();
            let job = job(mpi, "worlds_tree", form, place.path());
            let with = job.run();
            let found = (with.code, &with.stdout);
            assert_eq!(found, (bare.code, &bare.stdout), "{}: {}", mpi.name, with.stderr);
            let said = with.said.iter().filter(|line| line.starts_with("data in ")).count();
            assert_eq!(said, 1, "{}: {:?}", mpi.name, with.said);
            let expected: Vec<Vec<_>> = WORLDS
                .iter()
                .map(|world| world.iter().map(|&(name, ranks)| (name.to_owned(), ranks)).collect())
                .collect();
            assert_eq!(worlds(&job.run_directory()), expected, "{}", mpi.name);
            check_report(&job.run_directory());
        }
    }
}

/// Launchers give spawned processes their own environment, not that of their parents: then the report says who is missing.
#[test]
fn children_out_of_reach_are_told() {
    for mpi in share!(spawning()) {
        let place = place();
        let job = job(mpi, "worlds_tree", Form::Inner, place.path());
        let with = job.run();
        assert_eq!((with.code, with.stdout.lines().count()), (0, 1), "{}: {with:?}", mpi.name);
        assert_eq!(rows::databases(&job.run_directory()).len(), 2, "{}", mpi.name);
        let report = lapscope(["report".as_ref(), job.run_directory().as_os_str()]);
        assert!(report.contains("! 9 of 9 spawned processes are not in these"), "{report}");
    }
}

/// An MPI that cannot spawn says so with lapscope as without.
#[test]
fn failing_to_spawn_is_the_same() {
    for mpi in CANNOT_SPAWN.iter().filter_map(|name| mpi::named(name)) {
        let place = place();
        let job = |form| job(mpi, "worlds_tree", form, place.path()).limit(Duration::from_secs(15));
        // Hydra hangs now and then behind a spawn that failed, with and without lapscope, until its time limit
        let run = |form: Form| {
            let tries = (0..3).filter_map(|_| job(form).try_run().ok());
            let ended = tries.into_iter().find(|it| !it.stdout.contains("APPLICATION TIMED OUT"));
            ended.unwrap_or_else(|| {
                panic!("{}, {form:?}: its launcher ended it three times", mpi.name)
            })
        };
        let (bare, with) = (run(Form::Bare), run(Form::Preload));
        assert_eq!((bare.code, bare.stdout.as_str()), (0, "this MPI cannot spawn\n"), "{bare:?}");
        assert_eq!((with.code, with.stdout), (bare.code, bare.stdout));
    }
}

#[test]
fn a_killed_child_is_named_with_its_world() {
    for mpi in share!(spawning()) {
        let place = place();
        let job =
            job(mpi, "worlds_die", Form::Preload, place.path()).limit(Duration::from_secs(15));
        // Open MPI 5 waits for parents that wait for children it has ended, with and without lapscope
        if let Ok(outcome) = job.try_run() {
            assert_ne!(outcome.code, 0, "{}", mpi.name);
        }
        let run = job.run_directory();
        recover(&run);
        let child = rows::open(&run.join("world-2-rank-1.db"));
        assert_eq!(rows::value(&child, "SELECT ended FROM rank"), "killed", "{}", mpi.name);
        let text = lapscope(["pending".as_ref(), run.as_os_str()]);
        assert!(text.contains("inside  MPI_Recv from rank 2:1"), "{}: {text}", mpi.name);
        let report = lapscope(["report".as_ref(), run.as_os_str()]);
        assert!(report.contains("! rank 2:1 on"), "{}: {report}", mpi.name);
    }
}

/// Each rank of Open MPI is alone where MPICH's Hydra has started it, and makes a job of its own.
#[test]
fn an_mpi_under_the_launcher_of_another_is_told() {
    let (Some(mpi), Some(other)) = (mpi::named("openmpi"), mpi::named("mpich")) else { return };
    // singletons of Open MPI fail where both make its first directory at once
    trials::up_to_three("Open MPI under Hydra", || {
        let place = place();
        let job = Job::new(other, 2, build::app(mpi, "alone"), Form::Outer, place.path());
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let words = ["2 processes were started together", "Open MPI's own mpirun"];
        let said = outcome.said.iter().filter(|line| words.iter().all(|word| line.contains(word)));
        assert_eq!(said.count(), 1, "{outcome:?}");
        let report = lapscope(["report".as_ref(), job.run_directory().as_os_str()]);
        assert!(
            report.contains("mpirun.openmpi") && report.contains("2 ranks, each alone"),
            "{report}"
        );
    });
}
