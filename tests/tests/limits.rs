//! Limits of the system and of libraries that a run meets: the program must not notice, and its user must be told which.

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{lapscope, place, recover, Form, Job, Outcome};
use lapscope_tests::{build, mpi, rows};

fn assert_unharmed(bare: &Outcome, with: &Outcome) {
    let differences = outcome_differences(bare, with);
    assert!(differences.is_empty(), "{}\nlapscope said {:#?}", differences.join("\n"), with.said);
}

/// The limit on the size of files stops the spool, or the database; what raises SIGXFSZ would end the program.
#[test]
fn limit_on_the_size_of_files() {
    for mpi in mpi::all() {
        let app = build::app(mpi, "limited");
        for (kilobytes, kept) in [("0", "summaries"), ("1000", "summaries"), ("2000", "spool")] {
            let run = |form| {
                let place = place();
                let job = Job::new(mpi, 2, &app, form, place.path()).args([kilobytes]);
                (job.run(), job.run_directory(), place)
            };
            let (bare, ..) = run(Form::Bare);
            let (with, directory, _place) = run(Form::Preload);
            assert_unharmed(&bare, &with);
            assert_eq!(with.code, 0, "{with:?}");
            let limits = with.said.iter().filter(|line| line.contains("ulimit -f")).count();
            assert!(limits >= 1, "{} {kilobytes}: {:#?}", mpi.name, with.said);
            assert!(!with
                .said
                .iter()
                .any(|line| line.contains("MAX_MB") || line.contains("free some")));
            recover(&directory);
            for path in rows::databases(&directory) {
                let database = rows::open(&path);
                let full = rows::value(&database, "SELECT summarized FROM rank");
                assert_eq!(
                    full,
                    if kept == "summaries" { "3" } else { "0" },
                    "{} {kilobytes}",
                    mpi.name
                );
            }
            let report = lapscope(["report".as_ref(), directory.as_os_str()]);
            assert!(!report.contains("LAPSCOPE_MAX_MB"), "{report}");
            assert_eq!(report.contains("ulimit -f"), kept == "summaries", "{report}");
        }
    }
}

/// SQLite by itself takes names of up to 512 bytes.
#[test]
fn paths_longer_than_those_of_sqlite() {
    for mpi in mpi::all() {
        let place = place();
        let mut run = place.path().to_path_buf();
        run.extend((0..10).map(|_| "x".repeat(100)));
        let alone = |form| Job::new(mpi, 2, build::app(mpi, "alone"), form, place.path());
        let with = alone(Form::Preload).env("LAPSCOPE_DIR", &run).run();
        assert_unharmed(&alone(Form::Bare).run(), &with);
        assert_eq!(with.said.len(), 1, "{:#?}", with.said);
        let names: Vec<_> = rows::files(&run)
            .into_iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["job", "rank-0.db", "rank-1.db"]);
        let count = "SELECT count(*) FROM requests WHERE call LIKE 'MPI_Isend%'";
        for run in [run.as_path(), &run.join("rank-1.db")] {
            let answer = lapscope(["sql".as_ref(), run.as_os_str(), count.as_ref()]);
            let expected = if run.is_dir() { "200" } else { "100" };
            assert!(answer.contains(expected), "{answer}");
            lapscope(["report".as_ref(), run.as_os_str()]);
        }
    }
}
