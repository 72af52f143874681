//! Sends that go from copies: their waits end at once, whenever the receiver comes, under every MPI; and what is said of it. That
//! nothing else changes is tested with all programs (`inject`).

use std::path::{Path, PathBuf};

use lapscope_tests::answer::{ask, number, rows as list, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::rows;
use lapscope_tests::trials::up_to_three;

/// Beyond every MPI's own limit for messages that it keeps.
const BYTES: u64 = 1 << 20;
const MESSAGES: u64 = 12;

/// What the program says: nanoseconds that a send was waited for, and that its receiver came late by.
fn medians(outcome: &Outcome) -> (f64, f64) {
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).expect("a number");
    (number(1), number(3))
}

fn run(mpi: &Mpi, form: &str, copied: &str, place: &Path) -> (Outcome, PathBuf) {
    run_with(mpi, [form, "30"], MESSAGES, &[("LAPSCOPE_BUFFER_SENDS", copied)], place)
}

fn run_with(
    mpi: &Mpi,
    [form, delay]: [&str; 2],
    messages: u64,
    settings: &[(&str, &str)],
    place: &Path,
) -> (Outcome, PathBuf) {
    let (bytes, messages) = (BYTES.to_string(), messages.to_string());
    let job = Job::new(mpi, 2, build::app(mpi, "copied_sends"), Form::Preload, place).args([
        bytes.as_str(),
        delay,
        &messages,
        form,
    ]);
    let job = settings.iter().fold(job, |job, (name, value)| job.env(name, *value));
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{form} under {}: {}", mpi.name, outcome.stderr);
    (outcome, job.run_directory())
}

/// Counts of rank 0: copied sends, their bytes, those that went as they were.
fn counts(run: &Path) -> (u64, u64, u64) {
    let database = rows::open(&run.join("rank-0.db"));
    let number = |column: &str| -> u64 {
        let value = rows::value(&database, &format!("SELECT {column} FROM copied_sends"));
        value.parse().expect("a number")
    };
    (number("sends"), number("bytes"), number("no_memory + datatype"))
}

/// The receiver is 30 ms late, and the data are copied in less than a tenth of that.
#[test]
fn the_wait_is_no_longer_the_receivers_delay() {
    for (form, turn) in [("isend", 0), ("send", 1), ("column", 2)] {
        for mpi in mpis!(turn) {
            up_to_three(&format!("late receiver under {}", mpi.name), || {
                let (bare_place, copied_place) = (place(), place());
                let (bare, _) = run(mpi, form, "0", bare_place.path());
                let (copied, directory) = run(mpi, form, "1m", copied_place.path());
                let ((waited, late), (left, still_late)) = (medians(&bare), medians(&copied));
                println!(
                    "{} {form}: {waited} ns of a delay of {late}, copied {left} of {still_late}",
                    mpi.name
                );
                assert!(waited > 0.8 * late, "{} {form} is kept by MPI itself", mpi.name);
                assert!(left < 0.2 * still_late, "{} {form} still waits: {left} ns", mpi.name);
                assert_eq!(counts(&directory), (MESSAGES, MESSAGES * BYTES, 0), "{}", mpi.name);
            });
        }
    }
}

/// Whatever the datatype, what arrives is what arrives without copies.
#[test]
fn datatypes_with_gaps_arrive_as_they_are() {
    const MESSAGES: &str = "40";
    for mpi in share!(mpi::all().to_vec()) {
        for seed in ["1", "2"] {
            let place = place();
            let run = |form, copied: &str| {
                let job = Job::new(mpi, 2, build::app(mpi, "copied_types"), form, place.path());
                let job = job.args([seed, MESSAGES]).env("LAPSCOPE_BUFFER_SENDS", copied);
                (job.run(), job.run_directory())
            };
            let (bare, _) = run(Form::Bare, "0");
            assert_eq!(bare.code, 0, "{}: {bare:?}", mpi.name);
            assert_eq!(bare.stdout.lines().count().to_string(), MESSAGES, "{bare:?}");
            let (with, directory) = run(Form::Preload, "16m");
            assert_eq!((with.code, &with.stdout), (0, &bare.stdout), "{}: {with:?}", mpi.name);
            let (sends, _, left) = counts(&directory);
            assert!(sends > 30 && left < 5, "{}: {sends} copied, {left} not", mpi.name);
        }
    }
}

/// What callbacks send while MPI ends is not copied: nobody would wait for the copies.
#[test]
fn what_is_sent_while_mpi_ends_goes_as_it_is() {
    for mpi in mpis!() {
        let place = place();
        let run = |form| {
            let app = build::app(mpi, "copied_at_the_end");
            Job::new(mpi, 2, app, form, place.path()).env("LAPSCOPE_BUFFER_SENDS", "4m").run()
        };
        let (bare, with) = (run(Form::Bare), run(Form::Preload));
        assert_eq!((bare.code, &*bare.stdout), (0, "farewell\n"), "{}: {bare:?}", mpi.name);
        let differences = outcome_differences(&bare, &with);
        assert!(differences.is_empty(), "{}: {differences:#?}", mpi.name);
    }
}

/// What is under way from a copy moves while the sender computes, where tests are injected; where none are, it stands still.
#[test]
fn injected_tests_move_copies() {
    let Some(mpi) = mpi::named("openmpi").filter(|mpi| Bed::SlowLink.is_there(mpi)) else { return };
    up_to_three("copies and injected tests", || {
        let received = |inject: &str| {
            let place = place();
            let job = Bed::SlowLink.job(mpi, 2, build::app(mpi, "copied_sends"), place.path());
            let (bytes, messages) = (BYTES.to_string(), MESSAGES.to_string());
            let job = job.args([bytes.as_str(), "30", &messages, "away"]);
            let settings = [
                ("LAPSCOPE_BUFFER_SENDS", "1m"),
                ("LAPSCOPE_INJECT", inject),
                ("LAPSCOPE_INJECT_INTERVAL_US", "500"),
                ("LAPSCOPE_INJECT_BUDGET", "50"),
            ];
            let job = settings.iter().fold(job, |job, (name, value)| job.env(name, *value));
            let outcome = job.run();
            assert_eq!(outcome.code, 0, "{inject}: {}", outcome.stderr);
            let copied = counts(&job.run_directory());
            assert_eq!(copied, (MESSAGES, MESSAGES * BYTES, 0), "{inject}");
            medians(&outcome).0
        };
        let [bare, timer, thread] = ["off", "timer", "thread"].map(received);
        println!("received in {bare} ns, with timer {timer}, with thread {thread}");
        assert!(timer < 0.5 * bare && thread < 0.5 * bare, "{bare} {timer} {thread}");
    });
}

/// What is larger than the limit goes as it is.
#[test]
fn larger_sends_wait() {
    for mpi in mpis!() {
        up_to_three("larger sends", || {
            let place = place();
            let (outcome, directory) = run(mpi, "isend", "1048575", place.path());
            let (waited, late) = medians(&outcome);
            assert!(waited > 0.8 * late, "{}: {waited} of {late}", mpi.name);
            assert_eq!(counts(&directory), (0, 0, 0), "{}", mpi.name);
        });
    }
}

/// Beyond the memory that they may take sends go as they are, with the right data: the program looks at them.
#[test]
fn sends_go_as_they_are_when_memory_is_in_use() {
    for mpi in mpis!() {
        up_to_three("memory in use", || {
            let place = place();
            let settings = [("LAPSCOPE_BUFFER_SENDS", "1m"), ("LAPSCOPE_BUFFER_SENDS_MB", "1")];
            // of two sends one after the other the first takes all of it, and may have it still when the next two come
            let (_, directory) = run_with(mpi, ["pair", "30"], MESSAGES, &settings, place.path());
            let (sends, _, left) = counts(&directory);
            assert_eq!(sends + left, 2 * MESSAGES, "{}", mpi.name);
            assert!(sends > 0 && left >= MESSAGES, "{}: {sends} copied, {left} not", mpi.name);
        });
    }
}

/// In slots that are off they wait, in the others not, and one run tells.
#[test]
fn slots_show_what_copies_gain() {
    for mpi in share!(mpi::debian()) {
        up_to_three(&format!("slots under {}", mpi.name), || {
            let place = place();
            let settings = [
                ("LAPSCOPE_BUFFER_SENDS", "1m"),
                ("LAPSCOPE_INJECT_AB", "on"),
                ("LAPSCOPE_INJECT_AB_MS", "40"),
            ];
            let (_, directory) = run_with(mpi, ["isend", "10"], 100, &settings, place.path());
            let report = ask("report", &directory);
            let problems = list(&report, "problems").iter();
            let is_said = problems.map(|it| text(it, "kind")).any(|kind| kind == "copied_sends");
            assert!(is_said, "{:#}", report["problems"]);
            let injection = &report["injection"];
            assert_eq!(text(&list(injection, "ranks")[0], "mode"), "sends");
            let gain = &list(injection, "sites")[0]["gain"];
            let (on, off) = (number(gain, "requests_on"), number(gain, "requests_off"));
            assert_eq!(on + off, 100.0, "{gain:#}");
            assert_eq!(on, number(&injection["totals"], "requests"), "{injection:#}");
            let (on, off) = (number(gain, "exposed_on_ns"), number(gain, "exposed_off_ns"));
            assert!(on < 0.3 * off, "{}: exposed {on} ns with, {off} ns without", mpi.name);
            assert_eq!(text(gain, "verdict"), "gain", "{gain:#}");
        });
    }
}
