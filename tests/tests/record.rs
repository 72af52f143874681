//! `LAPSCOPE_RECORD=sums` and `off`: what is kept then, and that programs do as they do without lapscope.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lapscope_fixture::agree;
use lapscope_tests::differential::{record_app, unrecorded_differences};
use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, paths, rows};

/// Programs whose messages and calls are the same in each run, and how many ranks each has.
const PROGRAMS: &[(&str, u32)] =
    &[("waitall", 2), ("sendrecv", 3), ("icollectives", 3), ("persistent_kinds", 2)];

/// By rank and call: how many, and bytes. Requests and calls, in rows and in sums.
fn totals(run: &Path) -> BTreeMap<String, String> {
    const SQL: &str = "SELECT group_concat(line, char(10)) FROM (
        SELECT name || ' ' || sum(n) || ' ' || sum(bytes) AS line FROM (
            SELECT call_id, count(*) AS n, sum(bytes) AS bytes
                FROM request JOIN operation ON operation.id = operation_id GROUP BY 1
            UNION ALL SELECT call_id, count(*), sum(bytes)
                FROM call JOIN operation ON operation.id = operation_id GROUP BY 1
            UNION ALL SELECT call_id, sum(count), sum(bytes) FROM tally WHERE reason = 'summary' GROUP BY 1)
        JOIN call_name ON call_name.id = call_id GROUP BY name ORDER BY name)";
    rows::databases(run)
        .iter()
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, rows::value(&rows::open(path), SQL))
        })
        .collect()
}

fn recorded(
    mpi: &Mpi,
    program: &str,
    ranks: u32,
    record: &str,
) -> (BTreeMap<String, String>, String) {
    let place = place();
    let app = build::app(mpi, program);
    let job = Job::new(mpi, ranks, app, Form::Preload, place.path()).env("LAPSCOPE_RECORD", record);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{program} under {}: {}", mpi.name, outcome.stderr);
    let run = job.run_directory();
    let rows: i64 = rows::databases(&run)
        .iter()
        .map(|path| {
            let sql = "SELECT (SELECT count(*) FROM request) + (SELECT count(*) FROM call)";
            rows::value(&rows::open(path), sql).parse::<i64>().expect("a number")
        })
        .sum();
    assert_eq!(rows == 0, record == "sums", "{program}: {rows} rows");
    (
        totals(&run),
        rows::value(&rows::open(&rows::databases(&run)[0]), "SELECT summarized FROM rank"),
    )
}

#[test]
fn sums_are_those_of_the_rows() {
    for (turn, &(program, ranks)) in PROGRAMS.iter().enumerate() {
        for mpi in mpis!(turn) {
            let (rows, none) = recorded(mpi, program, ranks, "on");
            let (sums, why) = recorded(mpi, program, ranks, "sums");
            assert_eq!(rows, sums, "{program} under {}", mpi.name);
            assert_eq!((&*none, &*why), ("0", "4"));
        }
    }
}

/// Those of `tests/apps` of which rows are known.
fn programs() -> Vec<String> {
    let all = rows::files(&paths::apps()).into_iter().filter(|path| {
        path.extension().is_some_and(|end| end == "c") && path.with_extension("expect").exists()
    });
    all.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn documents_of_recorded_runs_say_the_same() {
    for (turn, mpi) in mpi::debian().into_iter().enumerate() {
        // times of several threads add up, so that shares may exceed one, as reports say; of MPI_Isendrecv overlap counts both
        // halves, which are one request
        let is_left_out = |name: &String| name.contains("thread") || name.contains("isendrecv");
        let programs = programs().into_iter().filter(|name| !is_left_out(name)).collect();
        for name in share!(turn, programs) {
            let place = place();
            let Some(run) = record_app(mpi, &name, place.path()) else { continue };
            println!("{name} under {}", mpi.name);
            let here = |&word: &&str| if word == "." { run.clone() } else { PathBuf::from(word) };
            agree::check(&|asked| lapscope(asked.iter().map(here)), true);
        }
    }
}

/// Nothing to inject for and nothing to record: the library is as good as not there.
#[test]
fn off_leaves_nothing() {
    const MODES: &[&[(&str, &str)]] = &[
        &[],
        &[
            ("LAPSCOPE_INJECT", "timer"),
            ("LAPSCOPE_INJECT_INTERVAL_US", "20"),
            ("LAPSCOPE_INJECT_MIN_BYTES", "0"),
        ],
        &[("LAPSCOPE_INJECT", "auto"), ("LAPSCOPE_INJECT_MIN_BYTES", "0")],
        &[
            ("LAPSCOPE_INJECT", "calls"),
            ("LAPSCOPE_INJECT_INTERVAL_US", "20"),
            ("LAPSCOPE_INJECT_MIN_BYTES", "0"),
        ],
    ];
    let pairs = programs().into_iter().enumerate().flat_map(|(at, name)| {
        let mpis = mpi::all().iter().enumerate();
        mpis.map(move |(turn, mpi)| (*mpi, name.clone(), MODES[(at + turn) % MODES.len()]))
    });
    let found: Vec<String> = share!(pairs.collect())
        .into_iter()
        .flat_map(|(mpi, name, options)| unrecorded_differences(mpi, &name, options))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// In a job that a site lets lapscope help, who measures still gets records.
#[test]
fn who_measures_gets_rows_all_the_same() {
    let Some(mpi) = mpi::named("mpich").or(mpi::all().first().copied()) else { return };
    let place = place();
    let program = [build::app(mpi, "waitall").into_os_string()];
    let mut run = child::command(paths::lapscope());
    run.args(["run", "--"]).args(mpi.launch_line(2, &program)).current_dir(place.path());
    run.envs(mpi.environment.iter().copied()).env("LAPSCOPE_RECORD", "off");
    run.env("LAPSCOPE_DIR", "pages/%j").env("LD_PRELOAD", paths::preload_library());
    let output = run.output().expect("lapscope starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let runs = rows::files(&place.path().join("pages"));
    assert_eq!(runs.len(), 1, "{runs:?}: {said}");
    assert!(!runs[0].ends_with("%j") && said.contains("pages/"), "{runs:?}: {said}");
    assert_eq!(rows::databases(&runs[0]).len(), 2, "{said}");
}
