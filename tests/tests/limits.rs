//! Limits of the system and of libraries that a run meets: the program must not notice, and its user must be told which.

use std::path::Path;

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{lapscope, place, recover, Form, Job, Outcome};
use lapscope_tests::{build, rows};

fn assert_unharmed(bare: &Outcome, with: &Outcome) {
    let differences = outcome_differences(bare, with);
    assert!(differences.is_empty(), "{}\nlapscope said {:#?}", differences.join("\n"), with.said);
}

/// The limit on the size of files stops the spool, or the database; what raises SIGXFSZ would end the program.
#[test]
fn limit_on_the_size_of_files() {
    for mpi in mpis!() {
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

/// Of a run that is longer than the limit holds, every message is in a row or in the sums, the limit is kept, ranks record the
/// same slots, and no message is matched with another.
#[test]
fn long_run() {
    for mpi in mpis!() {
        let place = place();
        let app = build::app(mpi, "long_run");
        let job = Job::new(mpi, 2, &app, Form::Preload, place.path())
            .args(["2", "40000", "100"])
            .env("LAPSCOPE_MAX_MB", "1");
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let sent: u64 = outcome.stdout.trim().parse().expect("a number of messages");
        let mut slots = Vec::new();
        for path in rows::databases(&job.run_directory()) {
            let database = rows::open(&path);
            let all = "SELECT (SELECT count(*) FROM request) + (SELECT sum(count) FROM tally t JOIN call_name n
                       ON n.id = t.call_id WHERE reason = 'summary' AND n.role = 'POST')";
            assert_eq!(rows::value(&database, all), (2 * sent).to_string(), "{}", path.display());
            assert_eq!(rows::value(&database, "SELECT summarized || lost_records FROM rank"), "10");
            let is_kept = "SELECT spool_bytes <= 1 << 20 FROM rank";
            assert_eq!(rows::value(&database, is_kept), "1", "{}", path.display());
            let has_rows = "SELECT count(*) FROM detail WHERE stage = 0";
            assert_eq!(rows::value(&database, has_rows), "1", "{}", path.display());
            let drawn = "SELECT ifnull(group_concat(slot), '') FROM (SELECT slot FROM detail WHERE stage = 1 AND cut = 0
                         AND slot < (SELECT min(slot) FROM detail WHERE stage > 1 OR cut))";
            slots.push(rows::value(&database, drawn));
        }
        assert!(slots[0].starts_with(&slots[1]) || slots[1].starts_with(&slots[0]), "{slots:?}");
        let overlap = overlap_of(&job.run_directory());
        let matching = &overlap["matching"];
        assert_eq!(matching["doubtful"], 0, "{matching}");
        assert!(matching["messages"].as_u64() > Some(1_000), "{matching}");
        let report = lapscope(["report".as_ref(), job.run_directory().as_os_str()]);
        assert!(report.contains("\nIn detail      What follows is of "), "{report}");
    }
}

/// Tags of which each is used once: definitions stay within the limit, too, and every message is in a row or in the sums.
#[test]
fn tags_without_end() {
    for mpi in mpis!() {
        let place = place();
        let app = build::app(mpi, "many_tags");
        let job = Job::new(mpi, 2, &app, Form::Preload, place.path())
            .args(["32000"])
            .env("LAPSCOPE_MAX_MB", "1");
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        for path in rows::databases(&job.run_directory()) {
            let database = rows::open(&path);
            let all = "SELECT (SELECT sum(o.bytes) FROM request r JOIN operation o ON o.id = r.operation_id)
                       + (SELECT sum(t.bytes) FROM tally t JOIN call_name n
                          ON n.id = t.call_id WHERE reason = 'summary' AND n.role = 'POST')";
            assert_eq!(rows::value(&database, all), (2 * 32_000 * 4).to_string());
            assert_eq!(rows::value(&database, "SELECT summarized || lost_records FROM rank"), "10");
            let is_kept = "SELECT spool_bytes <= 1 << 20 FROM rank";
            assert_eq!(rows::value(&database, is_kept), "1", "{}", path.display());
            let told = "SELECT count(*) FROM left_out l JOIN operation o ON o.id = l.operation_id WHERE o.tag IS NULL";
            assert_eq!(rows::value(&database, told), "2", "one of sends, one of receives");
        }
        let overlap = overlap_of(&job.run_directory());
        assert_eq!(overlap["matching"]["doubtful"], 0, "{overlap}");
    }
}

fn overlap_of(directory: &Path) -> serde_json::Value {
    let text = lapscope(
        ["overlap", "--format", "json"]
            .map(AsRef::as_ref)
            .into_iter()
            .chain([directory.as_os_str()]),
    );
    serde_json::from_str(&text).expect("JSON")
}

/// SQLite by itself takes names of up to 512 bytes.
#[test]
fn paths_longer_than_those_of_sqlite() {
    for mpi in mpis!() {
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
