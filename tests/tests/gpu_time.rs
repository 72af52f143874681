//! When GPUs work is recorded: on a stand-in for CUDA's driver and CUPTI that keeps time, so that it is known what has to be found.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use lapscope_fixture::documented;
use lapscope_tests::answer::{ask, number, rows, text};
use lapscope_tests::launch::{lapscope, place, recover, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, paths, trials};

const ROUNDS: u32 = 10;
const KERNEL_NS: i64 = 20_000_000;

/// The stand-in as a driver; `cupti`: the name under which it is found, in a toolkit's place.
fn driver(mpi: &Mpi, cupti: &str, place: &Path) -> PathBuf {
    let driver = place.join("libcuda.so.1");
    let extras = place.join("cuda/extras/CUPTI/lib64");
    fs::copy(build::library(mpi, "gpu_clockwork"), &driver).expect("a copy");
    fs::create_dir_all(&extras).expect("a directory");
    fs::hard_link(&driver, extras.join(cupti)).expect("a link");
    driver
}

fn run(mpi: &Mpi, form: Form, cupti: &str, more: &[&str], place: &Path) -> Outcome {
    let driver = driver(mpi, cupti, place);
    let (rounds, ns) = (ROUNDS.to_string(), KERNEL_NS.to_string());
    let job = Job::new(mpi, 2, build::app(mpi, "gpu_work"), form, place)
        .args([&rounds, "1", &ns, "10000"])
        .args(more)
        .env("GPU_DRIVER", driver)
        .env("CUDA_HOME", place.join("cuda"));
    match form {
        // `lapscope run` names the plugin itself; where nothing is recorded it does nothing
        Form::Outer => job.run(),
        _ => {
            let plugin = paths::preload_library().with_file_name("liblapscope-cuda.so");
            job.env("CUDA_INJECTION64_PATH", plugin).run()
        }
    }
}

fn database(run: &Path, rank: u32) -> Connection {
    Connection::open(run.join(format!("rank-{rank}.db"))).expect("a database")
}

fn numbers<const COLUMNS: usize>(database: &Connection, sql: &str) -> [i64; COLUMNS] {
    let row = |row: &rusqlite::Row<'_>| {
        let values: Vec<i64> = (0..COLUMNS).map(|at| row.get(at).unwrap_or(0)).collect();
        Ok(<[i64; COLUMNS]>::try_from(values).expect("as many columns"))
    };
    database.query_row(sql, [], row).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

const WORK: &str =
    "SELECT count(*), sum(busy_ns), sum(end_ns - begin_ns) FROM device_busy WHERE work = ";
const RECORDER: &str =
    "SELECT count(*), sum(lost), sum(problem IS NOT NULL), max(source) FROM device_recorder";
/// By hand, without lapscope's own arithmetic.
const BESIDE: &str = "SELECT sum(max(0, min(c.until_ns, d.end_ns) - max(c.since_ns, d.begin_ns)))
  FROM (SELECT begin_ns AS since_ns, begin_ns + duration_ns AS until_ns
          FROM call c JOIN operation o ON o.id = c.operation_id JOIN call_name n ON n.id = o.call_id
          WHERE n.name IN ('MPI_Waitall', 'MPI_Barrier')
        UNION ALL SELECT post_begin_ns, post_begin_ns + post_ns FROM request) c JOIN device_busy d
  WHERE d.work = 'kernel'";

fn check_rank(database: &Connection) {
    let [rows, busy, length] = numbers(database, &format!("{WORK}'kernel'"));
    let expected = i64::from(ROUNDS) * KERNEL_NS;
    assert_eq!((rows, busy), (i64::from(ROUNDS), length));
    assert!((busy - expected).abs() < 1_000, "{busy} of {expected}");
    for copies in ["'to_device'", "'to_host'"] {
        let [rows, busy, _] = numbers(database, &format!("{WORK}{copies}"));
        assert!(rows == 1 && (busy - 80_000).abs() < 100, "{copies}: {rows}, {busy}");
    }
    assert_eq!(numbers::<3>(database, RECORDER), [1, 0, 0]);
}

#[test]
fn kernels_of_known_length_and_the_waits_beside_them() {
    for (mpi, cupti) in
        mpis!(0).into_iter().zip(["libcupti.so.12", "libcupti.so.13"].iter().cycle())
    {
        let bare_place = place();
        let bare = run(mpi, Form::Bare, cupti, &[], bare_place.path());
        let place = place();
        let with = run(mpi, Form::Outer, cupti, &[], place.path());
        assert_eq!((bare.code, with.code), (0, 0), "{bare:?} {with:?}");
        assert_eq!(with.stdout, bare.stdout);
        let recorded = place.path().join("run");
        let mut beside = 0;
        for rank in 0..2 {
            let database = database(&recorded, rank);
            check_rank(&database);
            beside += numbers::<1>(&database, BESIDE)[0];
            let source: String = database
                .query_row("SELECT source FROM device_recorder", [], |row| row.get(0))
                .expect("a row");
            assert_eq!(&source, cupti);
        }
        let report = ask("report", &recorded);
        check_report(&report, beside as f64);
        check_timeline(&recorded, place.path());
        println!("{}: {} ms of waits beside kernels", mpi.name, beside / 1_000_000);
    }
}

fn check_report(report: &Value, beside: f64) {
    let found = number(&report["summary"], "overlapped_with_gpu_ns");
    assert!(beside > 0.0 && (found - beside).abs() < 10_000.0, "{found} of {beside}");
    let parts = [
        "posting_ns",
        "exposed_ns",
        "overlapped_with_gpu_ns",
        "blocking_ns",
        "collective_ns",
        "unsuccessful_test_ns",
    ];
    let in_mpi: f64 = parts.iter().map(|part| number(&report["totals"], part)).sum();
    let exposed = number(&report["summary"], "exposed_ns");
    assert!((exposed + found - in_mpi).abs() < 1.0, "{exposed} + {found} of {in_mpi}");
    let mut advice = report["advice"].as_array().expect("a list").iter();
    let is_next = advice.any(|it| it["cure"] == "wait_after_kernels");
    assert!(is_next, "in odd rounds rank 0 waits and then starts a kernel: {:#}", report["advice"]);
    let gpus = &report["gpu_efficiency"];
    let computing = f64::from(2 * ROUNDS) * KERNEL_NS as f64;
    assert!((number(gpus, "computing_ns") - computing).abs() < 2_000.0, "{gpus}");
    assert!(report["problems"]
        .as_array()
        .is_some_and(|all| all.iter().all(|it| it["kind"] != "accelerator")));
}

fn check_timeline(run: &Path, place: &Path) {
    let file = place.join("chrome.json");
    lapscope([
        "export".as_ref(),
        "chrome".as_ref(),
        "--output".as_ref(),
        file.as_os_str(),
        run.as_os_str(),
    ]);
    let text = fs::read_to_string(&file).expect("a timeline");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    let begins = |name: &str| {
        let is_meant = |it: &&Value| it["cat"] == "gpu" && it["ph"] == "b" && it["name"] == name;
        events.iter().filter(is_meant).count()
    };
    assert_eq!(begins("GPU 0: kernels"), 2 * ROUNDS as usize);
    assert_eq!(begins("GPU 0: copies to the host"), 2);
}

/// Rank 0 kills itself some time after its last kernel, and MPI_Finalize comes to nobody.
#[test]
fn what_a_killed_rank_computed_is_on_record() {
    for mpi in mpis!(1) {
        let place = place();
        let killed = run(mpi, Form::Preload, "libcupti.so.12", &["die"], place.path());
        assert_ne!(killed.code, 0, "{killed:?}");
        let recorded = place.path().join("run");
        recover(&recorded);
        check_rank(&database(&recorded, 0));
    }
}

/// The last kernel ends right before MPI does, otherwise than by MPI_Finalize.
#[test]
fn the_last_kernel_is_on_record_however_mpi_ends() {
    let Some(mpi) = mpi::named("mpich") else { return };
    for (how, code) in [("session", 0), ("abort", 7), ("aborts", 7)] {
        let place = place();
        let driver = driver(mpi, "libcupti.so.12", place.path());
        let ended = Job::new(mpi, 1, build::app(mpi, "gpu_ends"), Form::Outer, place.path())
            .args([how])
            .env("GPU_DRIVER", driver)
            .env("CUDA_HOME", place.path().join("cuda"))
            .run();
        assert_eq!(ended.code, code, "{ended:?}");
        let database = database(&place.path().join("run"), 0);
        let [rows, busy, _] = numbers(&database, &format!("{WORK}'kernel'"));
        assert!(rows == 1 && (busy - KERNEL_NS).abs() < 100, "{how}: {rows}, {busy}");
    }
}

/// The program of rank 0 becomes the client of CUPTI, which reports nothing of the last copies to anybody else.
#[test]
fn who_takes_cupti_over_is_seen() {
    for mpi in mpis!(2) {
        let place = place();
        let with = run(mpi, Form::Outer, "libcupti.so.12", &["profile"], place.path());
        assert_eq!(with.code, 0, "{with:?}");
        let recorded = place.path().join("run");
        let problems: [Option<String>; 2] = [0, 1].map(|rank| {
            let sql = "SELECT problem FROM device_recorder";
            let problem = database(&recorded, rank).query_row(sql, [], |row| row.get(0));
            problem.expect("a row")
        });
        let reason = "another tool in the process may have taken CUPTI over";
        assert_eq!(problems, [Some(reason.to_owned()), None]);
        let report = ask("report", &recorded);
        assert_eq!(report["summary"]["exposed_is_upper_bound"], true);
        let found = number(&report["summary"], "overlapped_with_gpu_ns");
        assert!(found > 0.0, "what was recorded before counts: {}", report["summary"]);
        let mut said = rows(&report, "problems").iter();
        assert!(said.any(|it| text(it, "message").contains(reason)), "{}", report["problems"]);
    }
}

/// `lapscope doctor --gpu`: its exit code, and of each finding name, state and what it says.
fn doctor(mpi: &Mpi, place: &Path, settings: &[(&str, &Path)]) -> (i32, Vec<[String; 3]>) {
    let job = Job::alone(paths::lapscope(), Form::Bare, place)
        .under(mpi)
        .args(["doctor", "--gpu", "--format", "json", "--"])
        .args(mpi.launch_line(2, &[]));
    let job = mpi.environment.iter().fold(job, |job, (name, value)| job.env(name, *value));
    let outcome = settings.iter().fold(job, |job, (name, value)| job.env(name, *value)).run();
    let answer: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{}: {error}: {outcome:?}", mpi.name));
    documented::check(&outcome.stdout);
    let row = |it: &Value| ["name", "status", "says"].map(|key| text(it, key).to_owned());
    (outcome.code, rows(&answer, "findings").iter().map(row).collect())
}

/// With a driver, whose CUPTI is found or not, and without.
#[test]
fn doctor_compares_what_is_recorded_with_what_is_known() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let cupti = place.path().join("cuda");
        driver(mpi, "libcupti.so.12", place.path());
        let found = [("LD_LIBRARY_PATH", place.path()), ("CUDA_HOME", &cupti)];
        trials::up_to_three(&format!("doctor --gpu under {}", mpi.name), || {
            let (code, findings) = doctor(mpi, place.path(), &found);
            let states: Vec<_> =
                findings.iter().map(|[name, state, _]| (&**name, &**state)).collect();
            let fine = [("GPU time", "ok"), ("kernels", "ok"), ("waits beside them", "ok")];
            assert_eq!((code, &*states), (0, &fine[..]), "{}: {findings:?}", mpi.name);
            assert_eq!(findings[0][2], "by libcupti.so.12");
            println!("{}: {findings:?}", mpi.name);
        });
        let in_one_line = |settings, code, state: &str, says: &str| {
            let (found, findings) = doctor(mpi, place.path(), settings);
            let [[_, its_state, said]] = &findings[..] else {
                panic!("not one line: {findings:?}")
            };
            assert_eq!((found, &**its_state), (code, state), "{findings:?}");
            assert!(said.contains(says), "{findings:?}");
        };
        in_one_line(&found[..1], 3, "missing", "no CUPTI was found");
        let named = [found[0], found[1], ("CUDA_INJECTION64_PATH", place.path())];
        in_one_line(&named, 3, "missing", "CUDA_INJECTION64_PATH names /");
        in_one_line(&[], 0, "note", "no GPU of NVIDIA's");
    }
}
