//! What is wrong around a program: the program must not notice, and its user must be told once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{lchown, symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use lapscope_generate::options;
use lapscope_tests::differential::assert_unharmed;
use lapscope_tests::launch::{lapscope, place, recover, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::namespace::{permitted, with_tmpfs};
use lapscope_tests::{build, paths, rows};

/// Messages that `alone.c` sends on each rank, and so its requests of each kind.
const ROUNDS: &str = "100";

/// `alone.c` on two ranks, to be run in the form given.
fn alone<'a>(mpi: &'a Mpi, form: Form, place: &'a Path) -> Job<'a> {
    Job::new(mpi, 2, build::app(mpi, "alone"), form, place)
}

/// What comes of it without lapscope, once for each MPI.
fn bare(mpi: &Mpi) -> Arc<Outcome> {
    static KNOWN: Mutex<BTreeMap<&str, Arc<Outcome>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let run = || {
        let place = place();
        let bare = alone(mpi, Form::Bare, place.path()).run();
        assert_eq!(bare.code, 0, "{}", bare.stderr);
        Arc::new(bare)
    };
    Arc::clone(known.entry(mpi.name).or_insert_with(run))
}

/// The data of a run of `alone.c` are all there.
fn assert_complete(run: &Path) {
    let databases = rows::databases(run);
    assert_eq!(databases.len(), 2, "{:?}", rows::files(run));
    for path in databases {
        let count = "SELECT count(*) FROM requests WHERE call LIKE 'MPI_Isend%' AND ended = 'waited' AND bytes = 1000";
        assert_eq!(rows::value(&rows::open(&path), count), ROUNDS, "{}", path.display());
    }
}

/// Lapscope said one thing, with all these words in it.
fn assert_said_once(with: &Outcome, words: &[&str]) {
    let fits = |line: &&String| words.iter().all(|word| line.contains(word));
    assert_eq!(
        with.said.iter().filter(fits).count(),
        1,
        "one line with {words:?} in {:#?}",
        with.said
    );
}

#[test]
fn directory_that_cannot_be_made() {
    for mpi in mpis!() {
        let place = place();
        let file = place.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let target = file.join("run");
        let with = alone(mpi, Form::Preload, place.path()).env("LAPSCOPE_DIR", &target).run();
        assert_unharmed(&bare(mpi), &with);
        assert_said_once(&with, &[target.to_str().unwrap(), "Not a directory", "LAPSCOPE_DIR"]);
        assert_eq!(with.said.len(), 1, "{:#?}", with.said);
    }
}

#[test]
fn read_only_file_system() {
    if !permitted("read-only file system") {
        return;
    }
    for mpi in mpis!() {
        let (place, mounted, copy) = (place(), place(), place());
        let with = alone(mpi, Form::Preload, place.path())
            .env("LAPSCOPE_DIR", mounted.path().join("run"))
            .inside(with_tmpfs("ro", mounted.path(), copy.path()))
            .run();
        assert_unharmed(&bare(mpi), &with);
        assert_said_once(&with, &["Read-only file system", "LAPSCOPE_DIR"]);
        assert_eq!(with.said.len(), 1, "{:#?}", with.said);
    }
}

/// Ten thousand requests in flight, into file systems too small for them, of several sizes: full from the start, full
/// while recording, full while converting.
#[test]
fn full_disk() {
    if !permitted("full disk") {
        return;
    }
    let sizes = ["4k", "64k", "256k", "1m", "4m", "8m"];
    for (number, size) in sizes.into_iter().enumerate() {
        for mpi in mpis!(number) {
            let app = build::app(mpi, "in_flight");
            let bare_place = place();
            let bare = Job::new(mpi, 2, &app, Form::Bare, bare_place.path()).run();
            let (place, mounted, copy) = (place(), place(), place());
            let with = Job::new(mpi, 2, &app, Form::Preload, place.path())
                .env("LAPSCOPE_DIR", mounted.path().join("run"))
                .inside(with_tmpfs(&format!("size={size}"), mounted.path(), copy.path()))
                .run();
            assert_unharmed(&bare, &with);
            let run = copy.path().join("run");
            let complete = rows::databases(&run).len() == 2
                && rows::databases(&run).iter().all(|path| {
                    rows::value(&rows::open(path), "SELECT count(*) FROM request") == "20000"
                });
            let warned = with.said.iter().any(|line| !line.starts_with("data in "));
            assert!(
                complete || warned,
                "{} {size}: nothing said, and not all there: {:?}",
                mpi.name,
                rows::files(&run)
            );
            assert!(with.said.len() <= 6, "{} {size}: {:#?}", mpi.name, with.said);
            for rank in 0..2 {
                let says = |words: String| with.said.iter().any(|line| line.contains(&words));
                let contradicts = says(format!("rank {rank} goes on recording summaries"))
                    && says(format!("rank {rank} is not recorded"));
                assert!(!contradicts, "{} {size}: {:#?}", mpi.name, with.said);
            }
        }
    }
}

/// Name and default of each option that does not take every text.
fn options_with_rules() -> Vec<(String, String)> {
    let path = paths::root().join("interposer/options.def");
    let options = lapscope_generate::read(&path, options::parse).unwrap().options;
    let has_rules = |option: &options::Variable| !matches!(option.values, options::Values::Text(_));
    options.into_iter().filter(has_rules).map(|option| (option.name, option.default)).collect()
}

#[test]
fn bad_value_in_every_variable() {
    let checked = options_with_rules();
    let values = ["nonsense", "-1", "99999999999999999999", " "];
    for (number, value) in values.into_iter().enumerate() {
        for mpi in mpis!(number) {
            let bare = bare(mpi);
            let place = place();
            let mut job = alone(mpi, Form::Preload, place.path());
            for (name, _) in &checked {
                job = job.env(name, value);
            }
            let with = job.run();
            assert_unharmed(&bare, &with);
            for (name, default) in &checked {
                assert_said_once(
                    &with,
                    &[&format!("{name}={value} "), &format!("using {default}")],
                );
            }
            assert_complete(&job.run_directory());
            let rejected = "SELECT count(*) FROM option WHERE source = 'rejected'";
            let database = rows::open(&job.run_directory().join("rank-0.db"));
            assert_eq!(rows::value(&database, rejected), checked.len().to_string());
        }
    }
}

#[test]
fn two_runs_at_once_in_one_directory() {
    for mpi in mpis!() {
        let place = place();
        let job = |number: usize| {
            let own = place.path().join(format!("temporary-{number}"));
            fs::create_dir(&own).unwrap(); // Open MPI's launchers fail where two make one directory at once
            alone(mpi, Form::Preload, place.path()).env("TMPDIR", own)
        };
        let bare = bare(mpi);
        let (first, second) = thread::scope(|scope| {
            let other = scope.spawn(|| job(1).run_beside_others());
            (job(2).run_beside_others(), other.join().expect("the other run"))
        });
        assert_unharmed(&bare, &first);
        assert_unharmed(&bare, &second);
        let runs = [place.path().join("run"), place.path().join("run-2")];
        let jobs: BTreeSet<String> = runs
            .iter()
            .map(|run| {
                assert_complete(run);
                let of_rank = |rank| {
                    rows::value(
                        &rows::open(&run.join(format!("rank-{rank}.db"))),
                        "SELECT job FROM rank",
                    )
                };
                assert_eq!(of_rank(0), of_rank(1));
                of_rank(0)
            })
            .collect();
        assert_eq!(jobs.len(), 2, "{jobs:?}");
        assert!(!place.path().join("run-3").exists());
    }
}

#[test]
fn a_run_after_another_in_one_directory() {
    for mpi in mpis!() {
        let place = place();
        let job = alone(mpi, Form::Preload, place.path());
        job.run();
        let second = job.run();
        assert_said_once(&second, &["data in ", "run-2"]);
        assert_complete(&place.path().join("run"));
        assert_complete(&place.path().join("run-2"));
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn data_are_private() {
    for mpi in mpis!() {
        let place = place();
        let job = alone(mpi, Form::Preload, place.path());
        job.run();
        assert_eq!(mode(&job.run_directory()), 0o700);
        for file in rows::files(&job.run_directory()) {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}

#[test]
fn not_through_the_link_of_another_user() {
    let (target, somebody_else) = (place(), 65534);
    for mpi in mpis!() {
        let place = place();
        let link = place.path().join("run");
        symlink(target.path(), &link).unwrap();
        if lchown(&link, Some(somebody_else), None).is_err() {
            lapscope_tests::say!("SKIPPED: the link of another user: only root can make one");
            return;
        }
        let with = alone(mpi, Form::Preload, place.path()).run();
        assert_unharmed(&bare(mpi), &with);
        assert_said_once(&with, &["another user"]);
        assert_eq!(rows::files(target.path()), Vec::<PathBuf>::new());
    }
}

/// The launcher starts a shell, and that becomes the program.
#[test]
fn exec_before_mpi_starts() {
    for mpi in mpis!() {
        let place = place();
        let command = format!("true; exec {}", build::app(mpi, "alone").display());
        let job = Job::new(mpi, 2, "sh", Form::Preload, place.path()).args(["-c", &command]);
        assert_unharmed(&bare(mpi), &job.run());
        assert_complete(&job.run_directory());
    }
}

/// A library of `tests/apps` preloaded beside lapscope: what it says on each of two ranks of a program, it says with lapscope
/// too.
fn stays_in_force(library: &str, app: &str, said: &str) {
    for mpi in mpis!() {
        let other = build::library(mpi, library);
        let app = build::app(mpi, app);
        let place_of_bare = place();
        let bare =
            Job::new(mpi, 2, &app, Form::Bare, place_of_bare.path()).env("LD_PRELOAD", &other);
        let bare = bare.run();
        assert_eq!(bare.stdout.matches(said).count(), 2, "{}", bare.stdout);
        for form in [Form::Preload, Form::Outer, Form::Inner] {
            let place = place();
            let mut job = Job::new(mpi, 2, &app, form, place.path()).env("LD_PRELOAD", &other);
            if form == Form::Preload {
                let both: OsString =
                    format!("{}:{}", paths::preload_library().display(), other.display()).into();
                job = job.env("LD_PRELOAD", both);
            }
            let with = job.run();
            let times = with.stdout.matches(said).count();
            assert_eq!(times, 2, "{form:?}: {}{:?}", with.stdout, with.said);
            assert_eq!(with.code, bare.code);
            assert_complete(&job.run_directory());
        }
    }
}

#[test]
fn another_profiler_stays_in_force() {
    stays_in_force("other_library", "alone", "saw 100 sends");
}

/// A tool that looks for MPI's functions by a handle gets MPI's, not our wrappers, which would call it again.
#[test]
fn another_profiler_that_asks_by_handle_stays_in_force() {
    stays_in_force("by_handle_library", "alone", "saw 100 sends");
}

/// Its dlsym has no version, as libc's has.
#[test]
fn another_that_answers_dlsym_stays_in_force() {
    stays_in_force("dlsym_library", "alone", "the other library answered");
}

#[test]
fn an_allocator_stays_in_force() {
    stays_in_force("other_allocator", "allocating", "the allocator was used");
}

/// Functions of others under names that MPI's would have with other Fortran compilers.
#[test]
fn namesakes_are_left_alone() {
    for mpi in mpis!() {
        let library = build::library(mpi, "namesake_library");
        let app = build::app(mpi, "namesake");
        let run = |form| {
            let place = place();
            Job::new(mpi, 1, &app, form, place.path()).args([&library]).run()
        };
        let bare = run(Form::Bare);
        assert_eq!(bare.stdout, "0: 200\n0: 202\n0: 204\n", "{}", bare.stderr);
        assert_unharmed(&bare, &run(Form::Preload));
    }
}

#[test]
fn unknown_mpi() {
    let program = build::unknown_mpi_program();
    let place = place();
    let bare = Job::alone(&program, Form::Bare, place.path()).run();
    assert_eq!((bare.code, bare.stdout.lines().count()), (5, 5), "{}{}", bare.stdout, bare.stderr);
    let job = Job::alone(&program, Form::Preload, place.path());
    let with = job.run();
    assert_unharmed(&bare, &with);
    assert_eq!(with.said.len(), 1, "{:#?}", with.said);
    assert_said_once(&with, &["Frobnicate MPI 1.0", "nothing is recorded"]);
    assert!(!job.run_directory().exists());
}

/// `liblapscope.so` alone in a directory, without the recorders.
#[test]
fn recorder_missing() {
    let lonely = place();
    let library = lonely.path().join("liblapscope.so");
    fs::copy(paths::preload_library(), &library).unwrap();
    for mpi in mpis!() {
        let place = place();
        let app = build::app(mpi, "alone");
        let bare = Job::new(mpi, 1, &app, Form::Bare, place.path()).run();
        let job = Job::new(mpi, 1, &app, Form::Preload, place.path()).env("LD_PRELOAD", &library);
        let with = job.run();
        assert_unharmed(&bare, &with);
        assert_eq!(with.said.len(), 1, "{:#?}", with.said);
        assert_said_once(&with, &[&format!("liblapscope-{}.so", mpi.abi), "lapscope doctor"]);
        assert!(!job.run_directory().exists());
    }
}

#[test]
fn switched_off() {
    for (number, off) in ["off", "0", "no", "FALSE"].into_iter().enumerate() {
        for mpi in mpis!(number) {
            let place = place();
            let with = alone(mpi, Form::Preload, place.path()).env("LAPSCOPE_ENABLE", off).run();
            assert_unharmed(&bare(mpi), &with);
            assert_eq!(with.said, Vec::<String>::new());
            assert_eq!(rows::files(place.path()), Vec::<PathBuf>::new());
        }
    }
}

#[test]
fn quiet() {
    for mpi in mpis!() {
        let place = place();
        let job = alone(mpi, Form::Preload, place.path()).env("LAPSCOPE_QUIET", "on");
        let with = job.run();
        assert_unharmed(&bare(mpi), &with);
        assert_eq!(with.said, Vec::<String>::new());
        assert_complete(&job.run_directory());
    }
}

#[test]
fn programs_without_mpi_are_untouched() {
    let scripts = ["exit 3", "echo out; echo err >&2", "sh -c 'sh -c true'; exit $?", "kill -9 $$"];
    for script in scripts {
        let place = place();
        let job = |form| Job::alone("sh", form, place.path()).args(["-c", script]);
        let with = job(Form::Preload).run();
        assert_unharmed(&job(Form::Bare).run(), &with);
        assert_eq!(with.said, Vec::<String>::new());
        assert_eq!(rows::files(place.path()), Vec::<PathBuf>::new());
    }
}

/// Erroneous programs end as they do without lapscope.
#[test]
fn pcontrol_before_init() {
    for mpi in mpis!() {
        let place = place();
        let app = build::app(mpi, "early_pcontrol");
        let bare = Job::new(mpi, 1, &app, Form::Bare, place.path()).run();
        let with = Job::new(mpi, 1, &app, Form::Preload, place.path()).run();
        assert_eq!(
            (bare.code, &bare.stdout),
            (with.code, &with.stdout),
            "{}{}",
            mpi.name,
            with.stderr
        );
    }
}

/// Beyond LAPSCOPE_MAX_MB there are no rows any more, but every request is in the tally.
#[test]
fn more_than_max_mb() {
    for mpi in mpis!() {
        let place = place();
        let app = build::app(mpi, "in_flight");
        let job = Job::new(mpi, 2, &app, Form::Preload, place.path()).env("LAPSCOPE_MAX_MB", "1");
        assert_eq!(job.run().code, 0);
        for path in rows::databases(&job.run_directory()) {
            let database = rows::open(&path);
            let query = "SELECT (SELECT count(*) FROM request) + (SELECT ifnull(sum(count), 0) FROM tally t JOIN call_name n
                         ON n.id = t.call_id WHERE reason = 'summary' AND n.role = 'POST')";
            assert_eq!(rows::value(&database, query), "20000", "{}", path.display());
            assert_eq!(rows::value(&database, "SELECT summarized || lost_records FROM rank"), "10");
        }
        let report = lapscope(["report".as_ref(), job.run_directory().as_os_str()]);
        assert!(report.lines().take(12).any(|line| line.contains("LAPSCOPE_MAX_MB")), "{report}");
    }
}

/// `lapscope run` leaves spools to its user as ranks do.
#[test]
fn conversion_left_for_later_by_the_launcher() {
    let mpi = mpi::all()[0];
    let place = place();
    let job = alone(mpi, Form::Outer, place.path()).env("LAPSCOPE_CONVERT", "off");
    let with = job.run();
    assert_said_once(&with, &["data in run: 2 spools, not converted", "lapscope recover run"]);
    assert_eq!(rows::databases(&job.run_directory()), Vec::<PathBuf>::new());
    recover(&job.run_directory());
    assert_complete(&job.run_directory());
}

#[test]
fn conversion_left_for_later() {
    for mpi in mpis!() {
        let place = place();
        let job = alone(mpi, Form::Preload, place.path()).env("LAPSCOPE_CONVERT", "off");
        assert_unharmed(&bare(mpi), &job.run());
        assert_eq!(rows::databases(&job.run_directory()), Vec::<PathBuf>::new());
        recover(&job.run_directory());
        assert_complete(&job.run_directory());
    }
}
