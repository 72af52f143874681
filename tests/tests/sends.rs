//! Sends that go from copies: their waits end at once, whenever the receiver comes, under every MPI; and what is said of it. That
//! nothing else changes is tested with all programs (`inject`).

use std::path::Path;

use lapscope_tests::build;
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

fn run(mpi: &Mpi, form: &str, copied: &str, place: &Path) -> (Outcome, std::path::PathBuf) {
    let (bytes, messages) = (BYTES.to_string(), MESSAGES.to_string());
    let job = Job::new(mpi, 2, build::app(mpi, "late_receiver"), Form::Preload, place)
        .args([bytes.as_str(), "30", &messages, form])
        .env("LAPSCOPE_BUFFER_SENDS", copied);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{form} under {}: {}", mpi.name, outcome.stderr);
    (outcome, job.run_directory())
}

/// Of rank 0: copied sends, their bytes, those that went as they were.
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
    for mpi in mpi::all() {
        for form in ["isend", "send", "column"] {
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

/// What is larger than the limit goes as it is.
#[test]
fn larger_sends_wait() {
    for mpi in mpi::all() {
        up_to_three("larger sends", || {
            let place = place();
            let (outcome, directory) = run(mpi, "isend", "1048575", place.path());
            let (waited, late) = medians(&outcome);
            assert!(waited > 0.8 * late, "{}: {waited} of {late}", mpi.name);
            assert_eq!(counts(&directory), (0, 0, 0), "{}", mpi.name);
        });
    }
}
