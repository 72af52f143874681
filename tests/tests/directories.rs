//! Jobs that are told to write into one directory, also from several nodes: nobody touches what another one writes; and programs that
//! take their directory away.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lapscope_tests::child;
use lapscope_tests::differential::assert_unharmed;
use lapscope_tests::launch::{self, place, try_lapscope, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::namespace::Nodes;
use lapscope_tests::{build, invariants, paths, rows};

/// `until.c` on two ranks under `lapscope run`, until `gate` exists.
fn until<'a>(mpi: &'a Mpi, place: &'a Path, gate: &Path) -> Job<'a> {
    Job::new(mpi, 2, build::app(mpi, "until"), Form::Outer, place).args([gate])
}

fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{} does not come", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}

fn open(gate: &Path) {
    fs::write(gate, "").expect("the gate");
}

/// What `until.c` printed.
fn rounds(outcome: &Outcome) -> String {
    let line = outcome.stdout.lines().find_map(|line| line.strip_suffix(" rounds"));
    line.unwrap_or_else(|| panic!("{outcome:?}")).to_owned()
}

/// The data of the run are all there, of ranks that ended so.
fn assert_complete(run: &Path, rounds: &str, ended: [&str; 2]) {
    let databases = rows::databases(run);
    assert_eq!(databases.len(), 2, "{:?}", rows::files(run));
    for (path, ended) in databases.iter().zip(ended) {
        let database = rows::open(path);
        assert_eq!(invariants::check(&database), Ok(()), "{}", path.display());
        let count = "SELECT count(*) FROM requests WHERE call LIKE 'MPI_Isend%' AND ended = 'waited' AND bytes = 1000";
        assert_eq!(rows::value(&database, count), rounds, "{}", path.display());
        assert_eq!(rows::value(&database, "SELECT ended FROM rank"), ended, "{}", path.display());
    }
    assert_eq!(spools(run), Vec::<PathBuf>::new());
}

fn spools(run: &Path) -> Vec<PathBuf> {
    let is_spool = |path: &PathBuf| path.to_string_lossy().contains("spool");
    rows::files(run).into_iter().filter(is_spool).collect()
}

/// The run directories that lapscope says it has data in.
fn named(outcome: &Outcome) -> Vec<&str> {
    let data = outcome.said.iter().filter_map(|line| line.strip_prefix("data in "));
    data.filter_map(|line| line.split(':').next()).collect()
}

/// Waits until both ranks of a run record, in whatever order they begin.
fn wait_for_ranks(run: &Path) {
    for rank in 0..2 {
        wait_for(&run.join(format!("rank-{rank}.spool")));
    }
}

/// Two jobs on two nodes, one directory. The first to end finds the other's spools beside its own.
fn on_two_nodes(mpi: &Mpi, nodes: &Nodes, place: &Path, how: &[&str], ended: [&str; 2]) {
    let gates = [place.join("gate-1"), place.join("gate-2")];
    let runs = [place.join("run"), place.join("run-2")];
    let job = |node, gate: &Path| {
        until(mpi, place, gate).args(how).inside(nodes.with_own_processes(node))
    };
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| job("alpha", &gates[0]).run_beside_others());
        wait_for_ranks(&runs[0]);
        let second = scope.spawn(|| job("beta", &gates[1]).run_beside_others());
        wait_for_ranks(&runs[1]);
        open(&gates[0]);
        let first = first.join().expect("the first run");
        let of_others = spools(&runs[1]);
        open(&gates[1]);
        let second = second.join().expect("the second run");
        assert_eq!(of_others.len(), 2, "{}: {of_others:?} {:#?}", mpi.name, first.said);
        (first, second)
    });
    for (outcome, run) in [(&first, &runs[0]), (&second, &runs[1])] {
        assert_eq!(outcome.code == 0, ended[0] == "finalize", "{}: {outcome:?}", mpi.name);
        let name = run.file_name().expect("a name").to_string_lossy();
        assert_eq!(named(outcome), [name], "{}: {:#?}", mpi.name, outcome.said);
        assert_complete(run, &rounds(outcome), ended);
    }
    assert!(!place.join("run-3").exists());
}

#[test]
fn two_jobs_on_two_nodes_with_one_directory_are_both_complete() {
    let files = place();
    let Some(nodes) = Nodes::new(files.path(), &["alpha", "beta"]) else { return };
    for mpi in mpis!() {
        on_two_nodes(mpi, &nodes, place().path(), &[], ["finalize", "finalize"]);
    }
}

#[test]
fn a_launcher_converts_what_its_own_killed_ranks_left_and_nothing_else() {
    let files = place();
    let Some(nodes) = Nodes::new(files.path(), &["alpha", "beta"]) else { return };
    for mpi in share!(mpi::debian()) {
        on_two_nodes(mpi, &nodes, place().path(), &["kill", "1"], ["killed", "killed"]);
    }
}

/// `lapscope recover`, on a node or here: whether it succeeded, and all that it printed.
fn recover(front: &[OsString], arguments: &[&str], run: &Path) -> (bool, String) {
    let mut line = front.to_vec();
    line.push(paths::lapscope().into());
    line.extend(["recover"].iter().chain(arguments).map(OsString::from));
    line.push(run.into());
    let output = child::command(&line[0]).args(&line[1..]).output().expect("lapscope runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Rank 1 runs on another node than the launcher, and is killed there: whether it is dead can only be seen there.
#[test]
fn a_spool_whose_rank_may_live_on_another_node_stays() {
    let files = place();
    let Some(nodes) = Nodes::new(files.path(), &["alpha", "beta"]) else { return };
    let mpi = mpi::all()[0];
    let place = place();
    let script = place.path().join("apart");
    let front = nodes.with_common_processes("beta");
    let words: Vec<_> = front.iter().map(|word| word.to_string_lossy()).collect();
    let line = shlex::try_join(words.iter().map(AsRef::as_ref)).expect("words of a line");
    let text = format!(
        "#!/bin/sh\ncase \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" in\n1) exec {line} \"$@\" ;;\n*) exec \"$@\" ;;\nesac\n"
    );
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("an executable script");
    let gate = place.path().join("gate");
    let job = Job::new(mpi, 2, script, Form::Outer, place.path())
        .args([build::app(mpi, "until").as_path(), &gate, "kill".as_ref(), "1".as_ref()])
        .inside(nodes.with_common_processes("alpha"));
    let run = job.run_directory();
    let outcome = thread::scope(|scope| {
        let outcome = scope.spawn(|| job.run_beside_others());
        wait_for(&run.join("rank-1.spool"));
        open(&gate);
        outcome.join().expect("the run")
    });

    let left = outcome.said.iter().find(|line| line.starts_with("rank-1 may still run on beta"));
    let left = left.unwrap_or_else(|| panic!("{:#?}", outcome.said));
    assert!(left.contains(&format!("lapscope recover {}", run.display())), "{left}");
    assert!(outcome.said[0].contains("2 ranks"), "what it has recorded was read: {outcome:?}");
    assert_eq!(spools(&run), [run.join("rank-1.spool")]);

    let report = try_lapscope(["report".as_ref(), run.as_os_str()]).expect("a report");
    assert!(report.contains("rank-1 may still run on beta"), "{report}");
    let (recovered, said) = recover(&[], &[], &run);
    assert!(!recovered && said.contains("lapscope recover --ended"), "{said}");
    assert_eq!(spools(&run), [run.join("rank-1.spool")]);

    let copy = place.path().join("copy");
    let copied = child::command("cp").arg("-a").args([&run, &copy]).status();
    assert!(copied.expect("cp runs").success());
    assert!(recover(&[], &["--ended"], &copy).0, "the user knows that it has ended");
    assert_complete(&copy, &rounds(&outcome), ["killed", "killed"]);
    let (recovered, said) = recover(&front, &[], &run);
    assert!(recovered, "{said}");
    assert_complete(&run, &rounds(&outcome), ["killed", "killed"]);
}

/// Without `--dir`: names have the time in them, and runs that begin together the same.
#[test]
fn runs_that_begin_together_tell_of_their_own_directory() {
    for mpi in mpis!() {
        let place = place();
        let gate = place.path().join("gate");
        let job = |number: usize| {
            let own = place.path().join(format!("temporary-{number}"));
            fs::create_dir(&own).expect("a directory for the launcher"); // Open MPI's fail where two make one at once
            let program = [build::app(mpi, "until").into_os_string(), gate.clone().into()];
            let mut job = Job::alone(paths::lapscope(), Form::Bare, place.path())
                .args(["run", "--"])
                .args(mpi.launch_line(2, &program));
            job.environment.extend(mpi.environment.iter().map(|&(n, v)| (n.into(), v.into())));
            job.env("TMPDIR", own)
        };
        let runs = || -> Vec<PathBuf> {
            let is_run = |path: &PathBuf| path.join("rank-1.spool").exists();
            rows::files(place.path()).into_iter().filter(is_run).collect()
        };
        let outcomes: Vec<Outcome> = thread::scope(|scope| {
            let all: Vec<_> =
                (0..3).map(|i| scope.spawn(move || job(i).run_beside_others())).collect();
            let begin = Instant::now();
            while runs().len() < 3 && begin.elapsed() < Duration::from_secs(40) {
                thread::sleep(Duration::from_millis(5));
            }
            open(&gate);
            all.into_iter().map(|run| run.join().expect("a run")).collect()
        });
        let mut all: Vec<&str> = Vec::new();
        for outcome in &outcomes {
            let names = named(outcome);
            assert_eq!(names.len(), 1, "{}: {:#?}", mpi.name, outcome.said);
            assert_complete(
                &place.path().join(names[0]),
                &rounds(outcome),
                ["finalize", "finalize"],
            );
            all.extend(names);
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3, "{all:?}");
    }
}

/// Nothing can be saved, and nobody says that it was.
#[test]
fn a_run_directory_that_the_program_removes() {
    for mpi in mpis!() {
        let (app, bare_place, place) = (build::app(mpi, "removes"), place(), place());
        let job = |form, place| Job::new(mpi, 2, &app, form, place);
        let bare = job(Form::Bare, bare_place.path()).args(["nothing"]).run();
        let with = job(Form::Preload, place.path());
        let directory = with.run_directory();
        let with = with.args([&directory]).run();
        assert_unharmed(&bare, &with);
        assert!(!directory.exists());
        let says = |words: &str| with.said.iter().filter(|line| line.contains(words)).count();
        assert_eq!(
            (says("is lost: somebody has removed"), says("Nothing is lost")),
            (2, 0),
            "{with:?}"
        );
    }
}

/// The spools are elsewhere: what is said to be done with them is done.
#[test]
fn a_run_directory_that_the_program_removes_while_spools_are_elsewhere() {
    for mpi in mpis!() {
        let (spools, place) = (place(), place());
        let job = Job::new(mpi, 2, build::app(mpi, "removes"), Form::Preload, place.path())
            .env("LAPSCOPE_SPOOL_DIR", spools.path());
        let directory = job.run_directory();
        let with = job.args([&directory]).run();
        assert_eq!((with.code, with.stdout.as_str()), (0, ""), "{with:?}");
        let cures = with.said.iter().filter_map(|line| {
            let (_, cure) = line.split_once("Nothing is lost: `")?;
            Some(cure.split_once(" && lapscope recover ")?.0)
        });
        for cure in cures {
            let is_done = child::command("sh").args(["-c", cure]).status();
            assert!(is_done.is_ok_and(|status| status.success()), "{cure}");
        }
        launch::recover(&directory);
        assert_eq!(rows::databases(&directory).len(), 2, "{with:?}");
    }
}

/// All is there, under another name.
#[test]
fn a_run_directory_that_the_program_moves() {
    for mpi in mpis!() {
        let place = place();
        let job = Job::new(mpi, 2, build::app(mpi, "removes"), Form::Preload, place.path());
        let (directory, moved) = (job.run_directory(), place.path().join("moved"));
        let with = job.args([&directory, &moved]).run();
        assert_eq!((with.code, with.stdout.as_str()), (0, ""), "{with:?}");
        let is_said = |line: &&String| line.contains("Nothing is lost: somebody has moved");
        assert_eq!(with.said.iter().filter(is_said).count(), 2, "{with:?}");
        launch::recover(&moved);
        assert_eq!(rows::databases(&moved).len(), 2);
    }
}
