//! Python programs, which load their MPI late and with local scope, and mpi4py's own tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::answer::{ask, number, policy_rule, rows, text};
use lapscope_tests::differential::{check_script, outcome_differences};
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::suite::{self, Selection};
use lapscope_tests::{paths, rows as recorded};

#[test]
fn messages_and_collectives() {
    check_script(&share!(mpi::with_python()), "python_exchange", &[Form::Preload]);
}

#[test]
fn mpi_loaded_inside_a_function() {
    check_script(&share!(mpi::with_python()), "python_late", &[Form::Preload]);
}

#[test]
fn functions_asked_for_by_handle() {
    check_script(&share!(mpi::with_python()), "python_by_handle", &[Form::Preload]);
}

#[test]
fn under_lapscope_run() {
    check_script(&share!(mpi::with_python()), "python_exchange", &[Form::Outer, Form::Inner]);
}

/// The barriers of a rank, by call path, innermost frame first: `NAME:LINE` of lines of Python, the name without the class or
/// function that it is in, `FILE NAME:LINE` of those of other files than the program's, and `native` of other frames in a row.
fn barriers(database: &Path) -> BTreeMap<Vec<String>, u64> {
    let database = recorded::open(database);
    let sql = "SELECT c.id, p.function, p.file, p.line FROM calls c JOIN frame f USING (call_path_id)
               LEFT JOIN python_lines p USING (call_path_id, depth) WHERE c.call = 'MPI_Barrier' ORDER BY c.id, depth";
    let mut calls: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    let mut statement = database.prepare(sql).expect("a query");
    let mut rows = statement.query([]).expect("rows");
    while let Some(row) = rows.next().expect("a row") {
        let path = calls.entry(row.get(0).expect("an id")).or_default();
        let Some(function) = row.get::<_, Option<String>>(1).expect("a function") else {
            if path.last().map_or(true, |last| last != "native") {
                path.push("native".into());
            }
            continue;
        };
        let (file, line): (String, u32) =
            (row.get(2).expect("a file"), row.get(3).expect("a line"));
        let name = function.rsplit('.').next().unwrap_or(&function);
        let file = if file.ends_with("/python_places.py") { String::new() } else { file + " " };
        path.push(format!("{file}{name}:{line}"));
    }
    let mut barriers = BTreeMap::new();
    for path in calls.into_values() {
        *barriers.entry(path).or_insert(0) += 1;
    }
    barriers
}

/// The lines that have a mark, as [`barriers`] names them, and how often each is called.
fn marked_lines(source: &str) -> BTreeMap<String, u64> {
    let marked = source.lines().zip(1..).filter_map(|(line, number)| {
        let (_, mark) = line.split_once("# at ")?;
        let (name, times) = mark.split_once(' ')?;
        Some((format!("{name}:{number}"), times.parse().ok()?))
    });
    marked.collect()
}

fn check_lines(python: &str, mpi: &Mpi) {
    let (place, program) = (place(), paths::apps().join("python_places.py"));
    let job = Job::new(mpi, 2, paths::python(python), Form::Preload, place.path())
        .args([&program])
        .env("MPI4PY_MPIABI", mpi.abi);
    let (outcome, with) = (job.run(), format!("{python} under {}", mpi.name));
    assert_eq!((outcome.code, &outcome.stdout[..]), (0, "passed\n"), "{with}: {outcome:?}");
    let is_usual = |line: &String| line.starts_with("data in ");
    assert!(outcome.stderr.is_empty() && outcome.said.iter().all(is_usual), "{with}: {outcome:?}");
    let mut expected = marked_lines(&fs::read_to_string(program).expect("the program"));
    assert!(expected.len() > 10, "{expected:?}");
    // lines of code objects that died before the next one was made
    expected.extend((2..6).map(|line| (format!("anew.py <module>:{line}"), 3)));
    let databases = recorded::databases(&job.run_directory());
    assert_eq!(databases.len(), 2, "{with}");
    for database in databases {
        let barriers = barriers(&database);
        let mut lines = BTreeMap::new();
        for (path, times) in &barriers {
            let line = path.iter().find(|frame| *frame != "native").cloned().unwrap_or_default();
            *lines.entry(line).or_insert(0) += times;
        }
        assert_eq!(lines, expected, "{with}");
        let way = |name: &str| {
            let path = barriers.keys().find(|path| path[1].starts_with(name)).expect("a path");
            let names = path.iter().map(|frame| frame.split(':').next().unwrap_or(frame));
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(way("inner:"), "native inner within outer main <module>", "{with}");
        assert_eq!(way("compare:"), "native compare native sort_in_c main <module>", "{with}");
        assert_eq!(way("generator:"), "native generator main <module>", "{with}");
        assert_eq!(way("deep:").matches("deep").count(), 41, "{with}");
        assert!(way("in_thread:").contains("/threading.py run"), "{with}");
        assert!(!way("in_thread:").contains("main"), "{with}");
    }
}

#[test]
fn lines_of_python() {
    for (python, mpi) in share!(mpi::of_each_python()) {
        check_lines(&python, mpi);
    }
}

/// Frames of every kind, code that dies, threads, forks: nothing of what a program does changes.
#[test]
fn whatever_programs_do() {
    for (python, mpi) in share!(mpi::of_each_python()) {
        let run = |form| {
            let place = place();
            let job = Job::new(mpi, 2, paths::python(&python), form, place.path())
                .args([paths::apps().join("python_strange.py")])
                .env("MPI4PY_MPIABI", mpi.abi);
            job.run()
        };
        let (bare, with) = (run(Form::Bare), run(Form::Preload));
        assert_eq!((bare.code, &bare.stdout[..]), (0, "passed\n"), "{python}: {bare:?}");
        let differences = outcome_differences(&bare, &with);
        assert!(differences.is_empty(), "{python} under {}: {differences:?}", mpi.name);
    }
}

/// Interruptions are refused where the executable brings a malloc that they might find at work. Debian's Python is linked at a
/// fixed address and takes the address of malloc, as if it brought one.
#[test]
fn tests_are_injected_by_a_timer() {
    let system = paths::python("python-system").is_file().then_some("python-system");
    for mpi in share!(mpi::debian()) {
        let place = place();
        let python = paths::python(system.unwrap_or(mpi.name));
        let job = Job::new(mpi, 2, python, Form::Preload, place.path())
            .args([paths::apps().join("python_exchange.py")])
            .env("MPI4PY_MPIABI", mpi.abi)
            .env("LAPSCOPE_INJECT", "timer");
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
        let databases = recorded::databases(&job.run_directory());
        assert_eq!(databases.len(), 2, "{}: {outcome:?}", mpi.name);
        for database in databases {
            let sql = "SELECT mode || ': ' || coalesce(problem, 'fine') FROM injector";
            assert_eq!(
                recorded::value(&recorded::open(&database), sql),
                "timer: fine",
                "{}",
                mpi.name
            );
        }
    }
}

/// Tests are made for requests of one line and not for those of another, though mpi4py posts both at one address.
#[test]
fn policies_tell_lines_apart() {
    for mpi in share!(mpi::debian()) {
        let sites_with = |policy: &Path| {
            let place = place();
            let job = Job::new(mpi, 2, paths::python(mpi.name), Form::Preload, place.path())
                .args([paths::apps().join("python_exchange.py")])
                .env("LAPSCOPE_INJECT", "calls")
                .env("LAPSCOPE_INJECT_MIN_BYTES", "1")
                .env("LAPSCOPE_INJECT_POLICY", policy);
            let outcome = job.run();
            assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
            let report = ask("report", &job.run_directory());
            let sites = rows(&report["injection"], "sites").iter();
            let receives = sites.filter(|site| text(site, "call").starts_with("MPI_Irecv"));
            let by_line = receives.map(|site| (number(&site["site"], "line") as u32, site.clone()));
            by_line.collect::<BTreeMap<u32, Value>>()
        };
        let place = place();
        let policy = place.path().join("policy");
        fs::write(&policy, "").expect("a policy");
        let first = sites_with(&policy);
        let (lines, sites): (Vec<u32>, Vec<Value>) = first.into_iter().unzip();
        let [of_loop, polled] = lines[..] else { panic!("{lines:?}") };
        let rules = rows(&sites[0], "addresses").iter();
        let rules = rules.map(|post| policy_rule(text(&sites[0], "call"), post));
        fs::write(&policy, rules.collect::<String>()).expect("a policy");
        let second = sites_with(&policy);
        let windows = |line| (number(&second[&line], "requests"), &second[&line]["policy"]);
        assert_eq!(windows(of_loop), (0.0, &Value::Bool(false)), "{}", mpi.name);
        assert_eq!(windows(polled), (2.0, &Value::Bool(true)), "{}", mpi.name);
    }
}

fn check_suite(mpis: &[&Mpi], ranks: &[u32], modules: &[&str], limit: Duration) {
    if !suite::is_there() {
        return;
    }
    let jobs = ranks.iter().flat_map(|&ranks| mpis.iter().map(move |mpi| (mpi, ranks)));
    let found: Vec<String> = jobs
        .filter_map(|(mpi, ranks)| {
            let selection = Selection { ranks, modules, options: &[], limit };
            suite::check(mpi, &selection).err()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// The ranks that `LAPSCOPE_TEST_RANKS=1,3` names, or these.
fn ranks_or(usual: &str) -> Vec<u32> {
    let named = std::env::var("LAPSCOPE_TEST_RANKS").unwrap_or_else(|_| usual.to_owned());
    named.split(',').filter_map(|rank| rank.parse().ok()).collect()
}

/// All but those of datatypes, which communicate nothing and take longer than the rest together, and those of spawning,
/// which take nearly as long.
fn modules_on_two_ranks() -> Vec<String> {
    let is_left_out = |name: &String| ["test_datatype.py", "test_spawn.py"].contains(&&name[..]);
    share!(suite::modules().into_iter().filter(|name| !is_left_out(name)).collect())
}

#[test]
fn own_tests_on_two_ranks() {
    let modules = modules_on_two_ranks();
    let options: Vec<&str> = modules.iter().flat_map(|name| ["-i", name]).collect();
    check_suite(&share!(mpi::with_python()), &ranks_or("2"), &options, Duration::from_secs(240));
}

/// All of them: `make mpi4py-suite`, half an hour.
#[test]
#[ignore = "half an hour: make mpi4py-suite"]
fn own_tests_in_full() {
    check_suite(&mpi::with_python(), &ranks_or("1,2,3"), &[], Duration::from_secs(1200));
}
