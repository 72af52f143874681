//! What `lapscope report` says of A/B runs: something is gained where transfers stand still, nothing where there is nothing to
//! gain. Only classes are asserted, as an interval may be wide on a busy machine, and of 95 % confidence it is wrong now and
//! then: each question is asked up to three times. Figures are printed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use lapscope_fixture::share::pairs;
use lapscope_tests::answer::{ask, number, rows, site, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials;

/// A busy machine takes its time.
const LONG: Duration = Duration::from_secs(600);

/// Variables of a run.
type Settings<'a> = &'a [(&'a str, &'a str)];

/// Runs the program in the directory `run` of `place`; what the report says of injection.
fn injected(
    (mpi, bed): (&Mpi, Bed),
    args: [&str; 3],
    settings: Settings<'_>,
    place: &Path,
) -> Value {
    let mut job = bed.job(mpi, 2, build::app(mpi, "gain"), place).args(args).limit(LONG);
    job = job.env("LAPSCOPE_INJECT_AB", "on");
    job = settings.iter().fold(job, |job, (name, value)| job.env(name, *value));
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "gain {args:?} under {}: {}", mpi.name, outcome.stderr);
    println!("\ngain {args:?}, {}, {}, {settings:?}", mpi.name, bed.word());
    println!("{}", outcome.stdout.trim());
    let printed = lapscope(["report".as_ref(), job.run_directory().as_os_str()]);
    let section = printed.lines().skip_while(|line| !line.starts_with("INJECTION"));
    section.take_while(|line| !line.is_empty()).for_each(|line| println!("{line}"));
    check(&ask("report", &job.run_directory())["injection"])
}

/// What holds of every run: both arms have requests, and no more is spent than may be.
fn check(injection: &Value) -> Value {
    let totals = &injection["totals"];
    for rank in rows(injection, "ranks") {
        assert_eq!(rank["problem"], Value::Null, "{rank:#}");
        let spent = number(rank, "spent_ns") / number(rank, "run_ns");
        assert!(spent < 1.5 * number(rank, "budget"), "{spent} of the run time: {rank:#}");
    }
    assert!(number(totals, "found") <= number(totals, "tests"), "{totals:#}");
    assert!(number(totals, "idle_ns") <= number(totals, "test_ns"), "{totals:#}");
    let on: f64 = sites(injection).map(|site| number(&site["gain"], "requests_on")).sum();
    assert_eq!(on, number(totals, "requests"), "requests posted with injection on");
    injection.clone()
}

fn sites(injection: &Value) -> impl Iterator<Item = &Value> {
    rows(injection, "sites").iter()
}

fn verdicts(injection: &Value) -> Vec<&str> {
    sites(injection).map(|site| text(&site["gain"], "verdict")).collect()
}

/// Large messages over a slow link, beside computation that is as long.
#[test]
fn what_stands_still_gains() {
    let mut mpis = mpi::debian();
    mpis.retain(|mpi| Bed::SlowLink.is_there(mpi));
    for (mode, mpi) in share!(pairs(&["timer", "thread"], &mpis)) {
        let settings = [
            ("LAPSCOPE_INJECT", mode),
            ("LAPSCOPE_INJECT_AB_MS", "300"),
            mpi::POLLS_KEEP_PROCESSORS,
        ];
        trials::up_to_three(&format!("{mode} under {}", mpi.name), || {
            let place = place();
            let args = ["2097152", "15", "300"];
            let injection = injected((mpi, Bed::SlowLink), args, &settings, place.path());
            let is_shorter = sites(&injection).all(|site| {
                let gain = &site["gain"];
                number(gain, "exposed_on_ns") < 0.8 * number(gain, "exposed_off_ns")
            });
            let gains = is_shorter && verdicts(&injection).contains(&"gain");
            assert!(gains, "no gain: {injection:#}");
        });
    }
}

/// Eager messages, which are there when anybody asks; and large ones with no computation beside them.
#[test]
fn where_there_is_nothing_to_gain_nothing_is_found() {
    let kinds = [["1000", "2", "1000"], ["1048576", "0", "6000"]];
    for (args, mpi) in share!(pairs(&kinds, &mpi::debian())) {
        let settings = [
            ("LAPSCOPE_INJECT", "timer"),
            ("LAPSCOPE_INJECT_MIN_BYTES", "0"),
            ("LAPSCOPE_INJECT_AB_MS", "20"),
        ];
        trials::up_to_three(&format!("{args:?} under {}", mpi.name), || {
            let place = place();
            let injection = injected((mpi, Bed::SharedMemory), args, &settings, place.path());
            let is_gain = |verdict: &str| verdict == "gain" || verdict == "not_enough_slots";
            let mut verdicts = verdicts(&injection);
            verdicts.push(text(&injection["whole"], "verdict"));
            assert!(!verdicts.into_iter().any(is_gain), "a gain: {injection:#}");
        });
    }
}

/// The whole run lies in one slot, or in two.
#[test]
fn one_slot_tells_nothing() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let settings = [("LAPSCOPE_INJECT", "calls"), ("LAPSCOPE_INJECT_AB_MS", "3600000")];
        let run = (mpi, Bed::SharedMemory);
        let injection = injected(run, ["1048576", "1", "20"], &settings, place.path());
        assert_eq!(verdicts(&injection), ["not_enough_slots"; 2]);
        assert_eq!(text(&injection["whole"], "verdict"), "not_enough_slots");
        let requests = |site: &Value| {
            let gain = &site["gain"];
            number(gain, "requests_on") + number(gain, "requests_off")
        };
        assert_eq!(sites(&injection).map(requests).collect::<Vec<f64>>(), [40.0; 2]);
    }
}

/// Eight ranks on one processor, and a thread beside each of them that would test all the time.
#[test]
fn tests_get_seldom_where_processors_are_short() {
    const RANKS: u32 = 8;
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("one processor under {}", mpi.name), || {
            let place = place();
            let job = Job::new(mpi, RANKS, build::app(mpi, "crowded"), Form::Preload, place.path())
                .inside(vec!["taskset".into(), "-c".into(), "0".into()])
                .args(["300"]) // of fewer, what is spent before a thread knows how crowded it is weighs too much
                .env("LAPSCOPE_INJECT", "thread")
                .env("LAPSCOPE_INJECT_MIN_BYTES", "0")
                .env("LAPSCOPE_INJECT_INTERVAL_US", "50")
                .env("LAPSCOPE_INJECT_BUDGET", "1");
            let outcome = job.run();
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            let report = ask("report", &job.run_directory());
            let ranks = rows(&report["injection"], "ranks");
            let sum = |key| -> f64 { ranks.iter().map(|rank| number(rank, key)).sum() };
            let (waited, spent) =
                (sum("waited_ns") / sum("run_ns"), sum("spent_ns") / sum("run_ns"));
            let budget = sum("budget") / ranks.len() as f64;
            println!(
                "{}: waited {waited:.3} of the time, budget {budget:.4}, spent {spent:.4}",
                mpi.name
            );
            assert!(waited > 0.5, "ranks had a processor: {ranks:#?}");
            assert!(spent < 1.5 * budget, "{ranks:#?}");
        });
    }
}

/// The addresses of a report, as lines of a policy, leave out that site and no other.
#[test]
fn addresses_are_those_of_a_policy() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let run = (mpi, Bed::SharedMemory);
        let args = ["1048576", "1", "20"];
        let mode = ("LAPSCOPE_INJECT", "calls");
        let injection = injected(run, args, &[mode], place.path());
        let policy = place.path().join("policy");
        let line = |post: &Value| {
            let module = Path::new(text(post, "module")).file_name().expect("a file");
            let (module, address) = (module.to_string_lossy(), number(post, "address") as u64);
            format!("off MPI_Isend {module}+{address:#x} {}\n", text(post, "build_id"))
        };
        let lines = rows(site(&injection, "MPI_Isend", "post"), "addresses").iter().map(line);
        fs::write(&policy, lines.collect::<String>()).expect("a policy");
        fs::remove_dir_all(place.path().join("run")).expect("the first run");
        let file = policy.to_str().expect("a path of letters");
        let injection =
            injected(run, args, &[mode, ("LAPSCOPE_INJECT_POLICY", file)], place.path());
        let [send, receive] = ["MPI_Isend", "MPI_Irecv"].map(|call| site(&injection, call, "post"));
        assert_eq!(text(&send["gain"], "verdict"), "switched_off", "{send:#}");
        assert_eq!((number(send, "requests"), &send["policy"]), (0.0, &Value::Bool(false)));
        assert!(receive["policy"] == Value::Bool(true), "{receive:#}");
    }
}
