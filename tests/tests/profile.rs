//! Lines in which a program computes, held against what it measured itself (`tests/apps/sampled.c`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::Value;

use lapscope_tests::answer::{ask_without_processors, number, rows as rows_of};
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, invariants, rows, trials};

/// A run of it.
struct Run {
    /// What the program says: the share of each function, in windows, and of the fourth, outside of them, in all.
    known: BTreeMap<String, f64>,
    ranks: Vec<Connection>,
    report: Value,
}

/// How often the program is looked at, and how it is run.
#[derive(Clone, Copy)]
struct Way {
    rate: &'static str,
    threads: &'static str,
    is_without_perf: bool,
    is_stripped: bool,
}

const PLAIN: Way = Way { rate: "2000", threads: "0", is_without_perf: false, is_stripped: false };

fn run(mpi: &Mpi, way: Way) -> Run {
    let place = place();
    let mut program = build::app_with(mpi, "sampled", &["-fopenmp"]);
    if way.is_stripped {
        let stripped = place.path().join("stripped");
        let made = child::command("strip").arg("-o").args([&stripped, &program]).status();
        assert!(made.is_ok_and(|status| status.success()), "strip");
        program = stripped;
    }
    let front: Vec<_> = match way.is_without_perf {
        true => vec![PathBuf::into(build::tool("without")), "perf".into(), "EPERM".into()],
        false => Vec::new(),
    };
    let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args(["1.5", way.threads]);
    let job = job.env("LAPSCOPE_SAMPLE", way.rate).inside(front);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
    let line = |line: &str| {
        let (name, share) = line.split_once(' ').expect("a name and a share");
        (name.to_owned(), share.parse().expect("a share"))
    };
    let directory = job.run_directory();
    let ranks: Vec<_> = rows::databases(&directory).iter().map(|path| rows::open(path)).collect();
    for rank in &ranks {
        assert_eq!(invariants::check(rank), Ok(()), "{}", mpi.name);
    }
    let report = ask_without_processors("report", &directory);
    Run { known: outcome.stdout.lines().map(line).collect(), ranks, report }
}

fn samples(rank: &Connection, of: &str) -> f64 {
    let query = format!("SELECT ifnull(sum(count), 0) FROM sample s WHERE {of}");
    rows::value(rank, &query).parse().expect("a number")
}

const IN_WINDOWS: &str = "EXISTS (SELECT 1 FROM sample_post WHERE sample_id = s.id)";

/// Shares are what the program measured, as far as that; returns how many samples there are.
fn check_shares(mpi: &Mpi, run: &Run, off_by: f64) -> f64 {
    let (all, within) = (
        samples(&run.ranks[0], "thread = 'caller'"),
        samples(&run.ranks[0], &format!("thread = 'caller' AND {IN_WINDOWS}")),
    );
    let outside = run.known["outside"];
    let mut found = vec![("outside", outside, 1.0 - within / all)];
    for (name, function) in
        [("first", "first"), ("second", "second"), ("third", "third"), ("outside", "fourth")]
    {
        let lines = rows_of(&run.report["profile"]["outside"], "lines").iter();
        let lines = lines.filter(|line| line["place"]["function"] == function);
        let share: f64 = lines.map(|line| number(line, "share")).sum();
        let known = if name == "outside" { outside } else { run.known[name] * (1.0 - outside) };
        found.push((function, known, share));
    }
    println!("{}, {all} samples: {found:.3?}", mpi.name);
    for (what, known, share) in found {
        assert!(
            (known - share).abs() <= off_by,
            "{what} under {}: {share}, known {known}",
            mpi.name
        );
    }
    all
}

/// Three loops while a receive is under way, one outside of that; threads beside them that call nothing; and a rank that sleeps.
#[test]
fn loops_of_known_shares() {
    for (mpi, threads) in mpi::debian().into_iter().zip(["0", "2"]) {
        trials::up_to_three("loops have their shares", || {
            let run = run(mpi, Way { threads, ..PLAIN });
            let sampler =
                |column: &str| rows::value(&run.ranks[0], &format!("SELECT {column} FROM sampler"));
            assert_eq!((sampler("problem"), sampler("lost")), ("NULL".to_owned(), "0".to_owned()));
            if sampler("by_signal") == "1" {
                println!("no perf_event_open here");
                return;
            }
            let all = check_shares(mpi, &run, 0.03);
            assert!(all >= 2_000.0, "{all} samples under {}", mpi.name);
            assert_eq!(sampler("other_threads"), threads);
            let others = samples(&run.ranks[0], "thread = 'other'");
            assert_eq!(
                others > 0.0,
                threads != "0",
                "{others} samples of other threads under {}",
                mpi.name
            );
            let asleep = samples(&run.ranks[1], "1");
            assert!(
                asleep <= 0.02 * all,
                "{asleep} samples of a rank that sleeps under {}",
                mpi.name
            );
        });
    }
}

/// By a timer's signal, which rings with the kernel's ticks; and without symbols it is told where in which file.
#[test]
fn without_perf_and_without_symbols() {
    for mpi in mpis!() {
        let way = Way { is_without_perf: true, ..PLAIN };
        let by_signal = run(mpi, way);
        assert_eq!(rows::value(&by_signal.ranks[0], "SELECT by_signal FROM sampler"), "1");
        let all = check_shares(mpi, &by_signal, 0.15);
        assert!(all >= 80.0, "{all} samples under {}", mpi.name);
        let stripped = run(mpi, Way { is_stripped: true, ..way });
        let lines = rows_of(&stripped.report["profile"]["outside"], "lines");
        let of_program = lines.iter().filter(|line| {
            line["place"]["module"].as_str().is_some_and(|it| it.ends_with("/stripped"))
        });
        let share: f64 = of_program.map(|line| number(line, "share")).sum();
        assert!(share >= 0.9, "{share} under {}: {lines:#?}", mpi.name);
        assert!(lines[0]["place"]["function"].is_null() && lines[0]["place"]["line"].is_null());
    }
}
