//! Programs that use a GPU, by a stand-in for its driver whose memory nobody else may touch: lapscope does not, says what it does
//! not see, and records whose memory it is. And programs that use none.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lapscope_tests::answer::{ask, rows, text};
use lapscope_tests::launch::{lapscope, place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, paths};
use serde_json::Value;

const CUDA: &str = "libcuda.so.1";
const HIP: &str = "libamdhip64.so.6";
const LEVEL_ZERO: &str = "libze_loader.so.1";

/// Variables of the environment.
type SetVariables<'a> = &'a [(&'a str, &'a str)];

/// The stand-in under that name.
fn driver(mpi: &Mpi, name: &str, place: &Path) -> PathBuf {
    let driver = place.join(name);
    fs::copy(build::library(mpi, "gpu_driver"), &driver).expect("a copy");
    driver
}

fn run(mpi: &Mpi, form: Form, name: &str, settings: SetVariables<'_>, place: &Path) -> Outcome {
    let shim = build::library(mpi, "gpu_mpi");
    let both = format!("{}:{}", paths::preload_library().display(), shim.display());
    let preload: OsString = if form == Form::Bare { shim.into() } else { both.into() };
    let job = Job::new(mpi, 2, build::app(mpi, "gpu"), form, place).env("LD_PRELOAD", preload);
    let job = job.env("GPU_DRIVER", driver(mpi, name, place).into_os_string());
    let job = job.env("GPU_DRIVER_CAME", place.join("came").into_os_string());
    settings.iter().fold(job, |job, (name, value)| job.env(name, *value)).run()
}

/// The answer to a query of one value.
fn value(run: &Path, sql: &str) -> String {
    let printed = lapscope([OsString::from("sql"), run.into(), sql.into(), "--format=csv".into()]);
    printed.lines().last().expect("a row").trim_matches('"').to_owned()
}

/// "device 3, host 2" of the requests of a rank, as SQL and the rows that people get have it.
fn memory_of_requests(run: &Path) -> String {
    let sql = "SELECT group_concat(line, ', ') FROM (SELECT coalesce(memory, 'unknown') || ' ' || count(*) AS line
               FROM requests WHERE rank = 1 GROUP BY memory ORDER BY memory)";
    let counted = value(run, sql);
    let listed = ask("requests", run);
    let of_rows = |kind: &str| {
        let of_rank = rows(&listed, "requests").iter().filter(|it| it["rank"] == 1);
        of_rank.filter(|it| it["memory"] == kind).count()
    };
    for kind in ["device", "host", "managed"] {
        let listed = format!("{kind} {}", of_rows(kind));
        assert!(of_rows(kind) == 0 || counted.contains(&listed), "{listed}: {counted}");
    }
    counted
}

/// What a copy, a watched buffer or an injected test would do to it is a crash, or, as the driver holds its lock, a hang.
#[test]
fn memory_of_a_device_is_not_touched() {
    let (copied, watched) = (("LAPSCOPE_BUFFER_SENDS", "1m"), ("LAPSCOPE_REACH", "on"));
    let all = ("LAPSCOPE_REACH_SHARE", "100");
    let interrupted = ("LAPSCOPE_INJECT", "timer");
    let every = [("LAPSCOPE_INJECT_MIN_BYTES", "1"), ("LAPSCOPE_INJECT_INTERVAL_US", "100")];
    let known = "device 4, host 4, managed 2";
    let beside = ("LAPSCOPE_INJECT", "thread");
    let unused = ("GPU_DRIVER_IS_IDLE", "1");
    let ways: [(&str, SetVariables<'_>, &str); 5] = [
        (CUDA, &[interrupted, every[0], every[1]], known),
        (CUDA, &[beside, every[0], every[1], unused], known),
        (CUDA, &[copied], known),
        // its driver is not asked for the record alone
        (HIP, &[watched, all], "unknown 10"),
        (LEVEL_ZERO, &[copied], "unknown 10"),
    ];
    for (turn, (name, settings, memory)) in ways.into_iter().enumerate() {
        for mpi in mpis!(turn) {
            let bare_place = place();
            let bare = run(mpi, Form::Bare, name, &[], bare_place.path());
            assert_eq!(bare.stdout, "24 of 24 right\n", "{bare:?}");
            let place = place();
            let with = run(mpi, Form::Preload, name, settings, place.path());
            assert_eq!((with.code, &with.stdout), (0, &bare.stdout), "{settings:?}: {with:?}");
            assert!(place.path().join("came").exists(), "what another test relies on");
            let directory = place.path().join("run");
            assert_eq!(memory_of_requests(&directory), memory, "{}, {name}", mpi.name);
            let report = ask("report", &directory);
            let is_used = !settings.contains(&unused);
            check_head(&report, (name.split_once('.').expect("a name").0, is_used), mpi);
            if settings[0] == copied {
                let sql = "SELECT sends || ', ' || value || ' of a GPU, ' || datatype || ' for other reasons'
                           FROM copied_sends JOIN option USING (rank) WHERE rank = 0 AND name = 'device_sends'";
                let sends = if name == LEVEL_ZERO { "0, 23" } else { "8, 15" };
                let expected = format!("{sends} of a GPU, 0 for other reasons");
                assert_eq!(value(&directory, sql), expected, "{}, {name}", mpi.name);
                let mut problems = rows(&report, "problems").iter();
                let why = "because their data may lie in the memory of a GPU";
                let is_said = problems.any(|it| text(it, "message").contains(why));
                assert!(is_said, "{:#}", report["problems"]);
            }
            if settings[0] == interrupted {
                let ranks = rows(&report["injection"], "ranks").iter();
                let refused =
                    ranks.filter(|it| it["problem"].to_string().contains("driver of a GPU"));
                assert_eq!(refused.count(), 2, "{:#}", report["injection"]);
                assert!(with.said.iter().any(|line| line.contains("driver of a GPU")), "{with:?}");
            }
            if settings[0] == beside {
                let injection = &report["injection"];
                let is_free = |it: &Value| it["problem"].is_null();
                assert!(rows(injection, "ranks").iter().all(is_free), "{injection:#}");
                assert!(injection["totals"]["tests"].as_u64() > Some(0), "{injection:#}");
            }
            println!("{}, {name}, {settings:?}: {}", mpi.name, with.stdout.trim_end());
        }
    }
}

/// What GPUs compute is not recorded, and all that depends on it says so.
fn check_head(report: &Value, (library, is_used): (&str, bool), mpi: &Mpi) {
    let [accelerator] = rows(&report["head"], "accelerators") else {
        panic!("not one: {}", report["head"])
    };
    assert_eq!((text(accelerator, "library"), &accelerator["ranks"]), (library, &2.into()));
    assert_eq!(report["summary"]["exposed_is_upper_bound"], is_used);
    if !is_used {
        assert_eq!(accelerator["unused_ranks"], 2);
        return;
    }
    let said = rows(report, "problems").iter().find(|it| it["kind"] == "accelerator");
    let said = said.unwrap_or_else(|| panic!("nothing of a GPU: {}", report["problems"]));
    assert!(text(said, "message").contains(library), "{said}");
    let marked = |advice: &Value| advice["rests_on_upper_bound"] == true;
    assert!(rows(report, "advice").iter().all(marked), "{}", report["advice"]);
    assert_eq!(accelerator["recorded_ranks"], 0);
    let buffers = match mpi.name {
        "openmpi" | "openmpi5" => "none".into(),
        _ => Value::Null, // others are not asked
    };
    assert_eq!(accelerator["device_buffers"], buffers, "{}", mpi.name);
}

/// No driver is opened, though the loader would find each.
#[test]
fn programs_without_a_gpu_open_no_driver() {
    for mpi in mpis!() {
        let place = place();
        for name in [CUDA, HIP, LEVEL_ZERO] {
            driver(mpi, name, place.path());
        }
        let of_mpi = mpi.environment.iter().filter(|(name, _)| *name == "LD_LIBRARY_PATH");
        let all =
            std::iter::once(place.path().to_owned()).chain(of_mpi.map(|(_, path)| path.into()));
        let paths = std::env::join_paths(all).expect("no colon in them");
        let came = place.path().join("came");
        let job = Job::new(mpi, 2, build::app(mpi, "waitall"), Form::Outer, place.path());
        let job = job.env("LD_LIBRARY_PATH", paths).env("GPU_DRIVER_CAME", came.clone());
        let outcome = job.env("LAPSCOPE_BUFFER_SENDS", "1m").run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(!came.exists(), "a driver was opened: {outcome:?}");
        let report = ask("report", &place.path().join("run"));
        assert_eq!(rows(&report["head"], "accelerators").len(), 0);
        assert_eq!(report["summary"]["exposed_is_upper_bound"], false);
    }
}

/// Two ranks beside a driver that nobody initialises.
fn run_with_idle_driver(mpi: &Mpi, app: &str, settings: SetVariables<'_>, place: &Path) {
    let both =
        [paths::preload_library(), driver(mpi, CUDA, place)].map(|it| it.display().to_string());
    let job = Job::new(mpi, 2, build::app(mpi, app), Form::Preload, place);
    let job = job.env("LD_PRELOAD", both.join(":")).env("GPU_DRIVER_IS_IDLE", "1");
    let outcome = settings.iter().fold(job, |job, (name, value)| job.env(name, *value)).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let sql = "SELECT count(*) FROM option WHERE name = 'accelerator' OR name = 'cuda' AND value = 'unused'";
    assert_eq!(value(&place.join("run"), sql), "4");
}

/// Behind the last session, too, there is an end at which it is asked for.
#[test]
fn a_driver_that_nobody_uses_in_sessions_is_no_gpu() {
    let Some(mpi) = mpi::named("mpich") else { return };
    run_with_idle_driver(mpi, "sessions", &[], place().path());
}

/// An MPI or a library that is built for GPUs brings the driver, and nobody initialises it.
#[test]
fn a_driver_that_nobody_uses_is_no_gpu() {
    for mpi in mpis!(3) {
        let place = place();
        run_with_idle_driver(mpi, "waitall", &[("LAPSCOPE_INJECT", "timer")], place.path());
        let recorded = place.path().join("run");
        let report = ask("report", &recorded);
        assert_eq!(report["head"]["accelerators"][0]["unused_ranks"], 2);
        assert_eq!(report["summary"]["exposed_is_upper_bound"], false);
        let injection = &report["injection"];
        let is_free = |it: &Value| it["problem"].is_null();
        assert!(rows(injection, "ranks").iter().all(is_free), "{injection:#}");
    }
}
