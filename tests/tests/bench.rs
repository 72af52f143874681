//! `lapscope bench` under real launchers: every experiment under every MPI, what it keeps, prints and draws; and the classes of
//! behaviour that are known of these MPIs. Times are never asserted, only what is larger than what by far; as other programs may
//! have the processors for a while, such questions are asked up to three times.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::answer::{number, rows, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{child, paths, trials};

/// A bench ends within this, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1500);

fn bench(place: &Path, options: &[&str]) -> Outcome {
    Job::alone(paths::lapscope(), Form::Bare, place)
        .args(["bench"])
        .args(options)
        .limit(PATIENCE)
        .run()
}

/// Results of a quick bench of some experiments under one MPI.
fn measured(mpi: &Mpi, link: &str, only: &str) -> Value {
    let place = place();
    let options = ["--quick", "--format", "json", "--link", link, "--only", only];
    let outcome = bench(place.path(), &[&options[..], &["--mpi", mpi_option(mpi)]].concat());
    answer(&outcome)
}

/// As `--mpi` takes it.
fn mpi_option(mpi: &Mpi) -> &'static str {
    mpi.compiler.strip_prefix("mpicc.").unwrap_or(mpi.compiler)
}

fn answer(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let results: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
    for run in rows(&results, "runs") {
        assert_eq!(run["problem"], Value::Null, "{run:#}");
    }
    results
}

fn tables(results: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let runs = rows(results, "runs").iter();
    runs.flat_map(|run| rows(run, "tables").iter().map(move |table| (run, table)))
}

/// The median of what the program measured; of the row of that size, else of the first.
fn program(table: &Value, bytes: Option<u64>, quantity: &str) -> f64 {
    let size = |row: &&Value| row["bytes"]["program"]["median"].as_f64() == bytes.map(|b| b as f64);
    let rows = rows(table, "rows");
    let row = if bytes.is_some() { rows.iter().find(size) } else { rows.first() };
    let row = row.unwrap_or_else(|| panic!("no row of {bytes:?}: {table:#}"));
    number(&row[quantity]["program"], "median")
}

/// The only table of that name with these attributes, of runs injected so.
fn table<'a>(
    results: &'a Value,
    name: &str,
    inject: &str,
    attributes: &[(&str, &str)],
) -> &'a Value {
    let is_it = |(run, table): &(&Value, &Value)| {
        text(table, "name") == name
            && text(run, "inject") == inject
            && attributes.iter().all(|(key, value)| text(&table["attributes"], key) == *value)
    };
    let found = tables(results).find(is_it);
    found.unwrap_or_else(|| panic!("no {name} {attributes:?}: {results:#}")).1
}

#[test]
fn examples_compile_without_a_warning() {
    let place = place();
    for mpi in mpis!() {
        for example in [
            "overlap/overlap",
            "progress/progress",
            "t0_t3/t0_t3",
            "collective_cpu/collective_cpu",
            "ghost_cells/ghost_cells",
            "wavefront/wavefront",
            "halo/halo",
            "reach/reach",
            "reach/stencil",
        ] {
            let source = paths::root().join(format!("examples/{example}.c"));
            let mut command = child::command(mpi.compiler);
            command.args([
                "-std=gnu11",
                "-O2",
                "-g",
                "-Wall",
                "-Wextra",
                "-Wshadow",
                "-Werror",
                "-Wno-stringop-overflow", // gcc takes MPICH's MPI_STATUSES_IGNORE for an array
                "-o",
            ]);
            command.arg(place.path().join("example")).arg(source).arg("-lm");
            let output =
                command.envs(mpi.environment.iter().copied()).output().expect("a compiler");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{example} under {}: {said}", mpi.name);
        }
    }
}

/// Every experiment under every MPI, in `make check` under one; the results kept, read again, and drawn.
#[test]
fn every_experiment_under_every_mpi() {
    let place = place();
    let mpis = mpis!();
    let mut options = vec!["--quick", "--link", "shared", "--output", "b.db", "--plot", "figures"];
    for mpi in &mpis {
        options.extend(["--mpi", mpi_option(mpi)]);
    }
    options.extend(["--format", "json"]);
    let results = answer(&bench(place.path(), &options));
    assert_eq!(rows(&results, "mpis").len(), mpis.len());
    for (run, table) in tables(&results) {
        assert!(!rows(table, "rows").is_empty(), "{run:#}");
    }
    check_both_numbers(&results, mpis.len());
    check_predictions(&results, mpis.len());

    let read = bench(place.path(), &["--read", "b.db", "--format", "json"]);
    assert!(answer(&read) == results, "read again it is something else");
    let card = bench(place.path(), &["--read", "b.db"]);
    for name in [
        "OVERLAP",
        "PROGRESS",
        "BLOCKING SENDS",
        "PROCESSOR TIME",
        "GHOST CELLS",
        "WAVEFRONT",
        "PROGRAM AND LAPSCOPE",
    ] {
        assert!(card.stdout.contains(name), "{name}: {}", card.stdout);
    }
    for figure in [
        "overlap-send",
        "overlap-receive",
        "progress-send",
        "post-delay",
        "collective-cpu",
        "ghost-cells",
        "agreement",
    ] {
        let file = place.path().join(format!("figures/{figure}.svg"));
        let svg =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{figure}: {error}"));
        assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{figure}");
    }
}

/// What programs measured themselves is what lapscope saw from outside.
fn check_both_numbers(results: &Value, mpis: usize) {
    let (mut both, mut close) = (0, 0);
    for (_, table) in tables(results) {
        for row in rows(table, "rows") {
            for value in row.as_object().expect("quantities").values() {
                let (Some(a), Some(b)) =
                    (value["program"]["median"].as_f64(), value["outside"]["median"].as_f64())
                else {
                    continue;
                };
                both += 1;
                close += i32::from((a - b).abs() <= 5.0 + 0.1 * a.abs().max(b.abs()));
            }
        }
    }
    println!("{both} quantities by both, {close} of them close");
    assert!(both > 100 * mpis as i32, "{both}");
    assert!(f64::from(close) > 0.85 * f64::from(both), "{close} of {both}");
}

/// Collectives of two ranks have predictions, of messages that each MPI's own calibration has measured.
fn check_predictions(results: &Value, mpis: usize) {
    let calibrated = tables(results).filter(|(_, table)| text(table, "name") == "loggps");
    assert_eq!(calibrated.count(), mpis);
    for (run, table) in tables(results).filter(|(_, table)| text(table, "name") == "collective_cpu")
    {
        for row in rows(table, "rows") {
            let predicted = |quantity: &str| number(&row[quantity]["outside"], "median");
            let share = predicted("predicted_network_percent");
            assert!(predicted("predicted_us") > 0.0, "{run:#}");
            assert!((0.0..=100.0).contains(&share), "{run:#}");
        }
    }
}

/// Large messages do not move while nobody calls MPI; with injected tests they do, in the same program.
#[test]
fn injection_turns_no_overlap_into_overlap() {
    if is_left_out!() {
        return;
    }
    const LARGE: Option<u64> = Some(4 << 20);
    let Some(mpi) = mpi::named("openmpi").filter(|mpi| Bed::SlowLink.is_there(mpi)) else { return };
    trials::up_to_three("no overlap into overlap", || {
        let results = measured(mpi, "slow", "overlap,progress");
        let of = |name, inject, side| {
            table(&results, name, inject, &[("side", side), ("first", "none")])
        };
        let hidden = |inject| program(of("overlap", inject, "receive"), LARGE, "overlap_percent");
        let growth = |inject, side| program(of("verdict", inject, side), LARGE, "growth_percent");
        println!("a receive: hidden {:.0} %, injected {:.0} %", hidden("off"), hidden("timer"));
        for side in ["send", "receive"] {
            let (off, timer) = (growth("off", side), growth("timer", side));
            println!(
                "a delayed {side}: latency grows by {off:.0} % of the delay, injected {timer:.0} %"
            );
        }
        let is_flatter = |side| growth("timer", side) < 0.5 * growth("off", side);
        let turns = hidden("off") < 50.0
            && hidden("timer") > 75.0
            && ["send", "receive"].into_iter().all(is_flatter);
        assert!(turns, "not what injection does");
    });
}

/// The sender's wait changes at the limit that Open MPI is configured with; a test in the receiver's computation frees it.
#[test]
fn sends_wait_from_the_limit_on_and_a_test_frees_them() {
    if is_left_out!() {
        return;
    }
    const LARGE: Option<u64> = Some(256 << 10);
    let Some(mpi) = mpi::named("openmpi").filter(|mpi| Bed::SlowLink.is_there(mpi)) else { return };
    trials::up_to_three("limits of a bench", || {
        let results = measured(mpi, "slow", "t0_t3");
        let of = |inject, tests| {
            table(&results, "t0_t3", inject, &[("tests", tests), ("messages", "1"), ("both", "0")])
        };
        let wait = |inject, tests, bytes| program(of(inject, tests), bytes, "wait0_us");
        let small = wait("off", "0", Some(1 << 10));
        let waits = wait("off", "0", LARGE);
        let (tested, injected) = (wait("off", "8", LARGE), wait("timer", "0", LARGE));
        println!("waits of a sender: {small:.0} us small, {waits:.0} us large, {tested:.0} us tested, {injected:.0} us injected");
        let limits = table(&results, "thresholds", "off", &[]);
        let (buffered, waiting) = (
            program(limits, None, "wait_buffered_bytes"),
            program(limits, None, "wait_blocking_bytes"),
        );
        let run = rows(&results, "runs").iter().find(|run| !rows(run, "thresholds").is_empty());
        let seen = rows(run.expect("a run with limits"), "thresholds").iter();
        let completion =
            seen.clone().find(|limit| text(limit, "what") == "rendezvous").expect("one");
        println!("limit: {buffered} to {waiting}; lapscope: {completion:#}");
        let is_bracket = |low: f64, high: f64| low < 65536.0 && 65536.0 <= high;
        let found = is_bracket(buffered, waiting)
            && is_bracket(
                number(completion, "largest_eager_bytes"),
                number(completion, "smallest_waiting_bytes"),
            )
            && waits > 4.0 * small.max(100.0)
            && tested < 0.5 * waits
            && injected < 0.5 * waits;
        assert!(found, "not what waits");
    });
}

/// The advice on the unimproved ghost cells names both strategies, which gain; injection alone gains, too.
#[test]
fn ghost_cells_gain_by_what_is_advised() {
    if is_left_out!() {
        return;
    }
    let Some(mpi) = mpi::named("openmpi") else { return };
    trials::up_to_three("ghost cells", || {
        let results = measured(mpi, "shared", "ghost_cells");
        let advice: Vec<&Value> =
            rows(&results, "runs").iter().flat_map(|run| rows(run, "advice")).collect();
        advice.iter().for_each(|advice| println!("{}", text(advice, "sentence")));
        let says =
            |words: &str| advice.iter().any(|advice| text(advice, "sentence").contains(words));
        let time = |form, inject| {
            program(table(&results, "steps", inject, &[("form", form)]), None, "communication_us")
        };
        let [plain, first, second] = ["plain", "test", "waitall"].map(|form| time(form, "off"));
        let injected = time("plain", "timer");
        println!(
            "in MPI: {plain:.0} us a step, strategy 1 {first:.0}, strategy 2 {second:.0}, injection alone {injected:.0}: {:.0} % of what strategy 1 gains",
            100.0 * (plain - injected) / (plain - first)
        );
        let gains = advice.iter().any(|advice| text(advice, "cure") == "wait_together")
            && says("all MPI_Test now and then")
            && first < 0.7 * plain
            && second < 0.7 * plain
            && injected < 0.7 * plain;
        assert!(gains, "not what is advised");
    });
}

#[test]
fn what_is_wrong_is_named() {
    let place = place();
    let fails = |options: &[&str], with: &str| {
        let outcome = bench(place.path(), options);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.said.join("\n").contains(with), "{with}: {outcome:?}");
        assert_eq!(outcome.stdout, "");
    };
    fails(&["--mpi", "/nowhere"], "/nowhere: no MPI of that name in PATH");
    fails(&["--read", "nothing.db"], "nothing.db");
    std::fs::write(place.path().join("there.db"), "text").expect("a file");
    fails(&["--read", "there.db"], "there.db");
    let mpi = mpi_option(mpi::all()[0]);
    fails(&["--mpi", mpi, "--link", "shared", "--output", "there.db"], "there.db is there already");
    assert_eq!(
        std::fs::read_to_string(place.path().join("there.db")).expect("still there"),
        "text"
    );
}

/// Interrupted, it prints what it has, and the file can be read.
#[test]
fn an_interrupted_bench_keeps_what_it_has() {
    let place = place();
    let mpi = mpi_option(mpi::all()[0]);
    let mut command = child::command(paths::lapscope());
    command
        .args(["bench", "--quick", "--link", "shared", "--only", "overlap,progress", "--mpi", mpi])
        .args(["--output", "b.db"])
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("lapscope starts");
    let file = place.path().join("b.db");
    let begin = std::time::Instant::now();
    while runs_in(&file) == 0 && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    // SAFETY: a signal to a child that has not been waited for
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let output = child.wait_with_output().expect("its end");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{stdout}{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert!(stdout.contains("OVERLAP"), "{stdout}");
    let read = answer(&bench(place.path(), &["--read", "b.db", "--format", "json"]));
    assert_eq!(rows(&read, "runs").len() as i64, runs_in(&file));
}

fn runs_in(file: &Path) -> i64 {
    let count = || -> rusqlite::Result<i64> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = rusqlite::Connection::open_with_flags(file, flags)?;
        database.query_row("SELECT count(*) FROM run", [], |row| row.get(0))
    };
    count().unwrap_or(0)
}
