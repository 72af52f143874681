//! `LAPSCOPE_INJECT=auto` under real MPIs: what it decides, and what it leaves alone. Only counts and decisions are asserted; where
//! a busy machine may stand against a decision, it is asked for up to three times.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::answer::{ask, number, rows as list, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::launch::{place, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{rows, trials};

const LONG: Duration = Duration::from_secs(300);

/// Runs a program of two ranks; its pages, by rank, and what it printed.
fn run(
    (mpi, bed): (&Mpi, Bed),
    app: &str,
    args: &[&str],
    options: &[(&str, &str)],
    place: &Path,
) -> (Vec<Value>, Outcome) {
    let mut job = bed.job(mpi, 2, build::app(mpi, app), place).args(args).limit(LONG);
    let auto = ("LAPSCOPE_INJECT", "auto");
    job = [auto, mpi::POLLS_KEEP_PROCESSORS]
        .iter()
        .chain(options)
        .fold(job, |job, (name, value)| job.env(name, *value));
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{app} {args:?} under {}: {}", mpi.name, outcome.stderr);
    println!("{app} {args:?}, {}, {}: {}", mpi.name, bed.word(), outcome.stdout.trim());
    (pages(&job.run_directory()), outcome)
}

fn pages(run: &Path) -> Vec<Value> {
    let files = rows::files(run);
    let is_page = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let text: String = files
        .iter()
        .filter(is_page)
        .map(|path| fs::read_to_string(path).expect("a page"))
        .collect();
    let mut pages: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a page")).collect();
    pages.sort_by_key(|page| page["rank"].as_i64());
    assert_eq!(pages.len(), 2, "a page of each rank: {text}");
    for page in &pages {
        println!("  rank {}: {:?}", page["rank"], decisions(page));
        check(page);
    }
    pages
}

/// What holds of every page.
fn check(page: &Value) {
    assert_eq!((number(page, "version"), &page["ended"]), (1.0, &Value::Bool(true)), "{page:#}");
    assert!(number(page, "found") <= number(page, "tests"), "{page:#}");
    let arms = list(page, "arms");
    assert_eq!((text(&arms[0], "mode"), &arms[0]["interval_us"]), ("off", &Value::Null));
    let times: Vec<f64> = list(page, "decisions").iter().map(|row| number(row, "at")).collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{times:?}");
    let spent = number(page, "spent_ns") / 1e9 / number(page, "seconds");
    assert!(spent < 0.05, "{spent} of the run time: {page:#}");
}

fn decisions(page: &Value) -> Vec<&str> {
    list(page, "decisions").iter().map(|row| text(row, "what")).collect()
}

fn tests(pages: &[Value]) -> f64 {
    pages.iter().map(|page| number(page, "tests") + number(page, "interrupts")).sum()
}

/// Large messages over a slow link beside computation: a way is kept whose gain is certain.
#[test]
fn what_gains_is_kept() {
    for mpi in mpi::named("openmpi").into_iter().filter(|mpi| Bed::SlowLink.is_there(mpi)) {
        trials::up_to_three(&format!("a gain under {}", mpi.name), || {
            let place = place();
            let args = ["1048576", "8", "900"];
            let (pages, _) = run((mpi, Bed::SlowLink), "gain", &args, &[], place.path());
            assert!(tests(&pages) > 0.0);
            let is_kept = |page: &Value| {
                let kept = list(page, "decisions").iter().find(|row| text(row, "what") == "keep");
                kept.is_some_and(|row| number(&row["gain"], "low") > 0.0)
            };
            assert!(pages.iter().any(is_kept), "nothing is kept: {pages:#?}");
        });
    }
}

/// Eager messages, and large ones with no computation beside them: no test, no interrupt.
#[test]
fn where_there_is_nothing_to_do_nothing_is_done() {
    for mpi in mpis!() {
        trials::up_to_three(&format!("eager messages under {}", mpi.name), || {
            let place = place();
            let args = ["1000", "0.5", "400"];
            let (pages, _) = run((mpi, Bed::SharedMemory), "phases", &args, &[], place.path());
            assert_eq!(tests(&pages), 0.0, "{pages:#?}");
            for page in &pages {
                assert!(decisions(page).is_empty() && list(page, "sites").is_empty(), "{page:#}");
            }
        });
    }
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("nothing beside under {}", mpi.name), || {
            let place = place();
            let args = ["262144", "0", "10000"]; // of 0.06 to 0.7 ms
            let (pages, _) = run((mpi, Bed::SharedMemory), "phases", &args, &[], place.path());
            assert_eq!(tests(&pages), 0.0, "{pages:#?}");
            assert!(pages.iter().all(|page| decisions(page) == ["nothing_beside"]), "{pages:#?}");
        });
    }
}

/// Small messages first and then large ones with computation, and the other way round.
#[test]
fn a_program_that_changes_is_followed() {
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("changes under {}", mpi.name), || follows_changes(mpi));
    }
}

fn follows_changes(mpi: &Mpi) {
    let bed = (mpi, Bed::SharedMemory);
    let place_of_first = place();
    let args = ["8", "0", "100000", "262144", "4", "300"];
    let (pages, outcome) = run(bed, "phases", &args, &[], place_of_first.path());
    let first_ms: f64 =
        outcome.stdout.split_whitespace().nth(1).expect("a phase").parse().expect("ms");
    for page in &pages {
        let begun = &list(page, "decisions")[0];
        assert_eq!(text(begun, "what"), "explore", "{page:#}");
        assert!(number(begun, "at") * 1e3 > first_ms, "{page:#}");
    }
    assert!(tests(&pages) > 0.0);

    let place_of_second = place();
    // the small ones take longer than the two seconds after which large ones are missed, and are thousands of calls
    let args = ["262144", "4", "160", "8", "0.5", "5000"];
    let (pages, _) = run(bed, "phases", &args, &[], place_of_second.path());
    for page in &pages {
        assert_eq!(decisions(page).first(), Some(&"explore"), "{page:#}");
        let ends = decisions(page).last().copied();
        assert!(ends == Some("idle") || ends == Some("off"), "{page:#}");
        assert_eq!(number(page, "in_force"), 0.0);
    }
}

/// The report has it from the databases, and from the pages where there is nothing else.
#[test]
fn the_report_tells_it() {
    if let Some(mpi) = mpi::named("mpich") {
        let place = place();
        let args = ["262144", "4", "200"];
        let (pages, _) = run((mpi, Bed::SharedMemory), "phases", &args, &[], place.path());
        let directory = place.path().join("run");
        let injection = &ask("report", &directory)["injection"];
        assert_eq!(text(&list(injection, "ranks")[0], "mode"), "auto");
        assert_eq!(injection["automatic"]["page"], pages[0]);
        for database in rows::databases(&directory) {
            fs::remove_file(database).expect("a database");
        }
        assert_eq!(ask("report", &directory)["automatic"]["page"], pages[0]);
        assert_eq!(number(&ask("report", &directory)["automatic"], "ranks"), 2.0);
    }
}

/// A way that cannot be had is left out, with the reason, and the others are tried.
#[test]
fn a_way_that_cannot_be_had_is_named() {
    if let Some(mpi) = mpi::named("mpich") {
        let place = place();
        let options = [("LAPSCOPE_INJECT_SIGNAL", "9")];
        let args = ["262144", "4", "300"];
        let (pages, _) = run((mpi, Bed::SharedMemory), "phases", &args, &options, place.path());
        for page in &pages {
            let problems: Vec<(&str, bool)> = list(page, "arms")
                .iter()
                .map(|arm| (text(arm, "mode"), arm["problem"].is_string()))
                .collect();
            let of_timers = problems.iter().filter(|(mode, _)| *mode == "timer");
            assert!(
                of_timers.clone().count() == 2 && of_timers.clone().all(|(_, is)| *is),
                "{page:#}"
            );
            assert!(problems.contains(&("calls", false)), "{page:#}");
            assert_eq!(number(page, "interrupts"), 0.0);
        }
    }
}
