//! Questions that people asked in public, each as a program of a few dozen lines in `tests/apps/field` whose answer is known:
//! what lapscope says first of it, and what the cure brings. `make field-check` prints the table.

use std::path::Path;

use lapscope_fixture::share::pairs;
use lapscope_tests::answer::{ask, number, text};
use lapscope_tests::build;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials;
use serde_json::Value;

#[derive(Debug, Clone, Copy)]
struct Question {
    program: &'static str,
    argument: Option<&'static str>,
    /// The cure, under Open MPI and under MPICH, which do not behave alike.
    cures: [&'static str; 2],
    /// Whether the cure lets messages move sooner; where others do more of the work no bound of communication holds.
    is_progress: bool,
    /// What the headline of the cure begins with.
    begins: &'static str,
}

const fn question(program: &'static str, cures: [&'static str; 2], is_progress: bool) -> Question {
    Question { program, argument: None, cures, is_progress, begins: "" }
}

impl Question {
    const fn with(self, argument: &'static str) -> Question {
        Question { argument: Some(argument), ..self }
    }

    const fn said_as(self, begins: &'static str) -> Question {
        Question { begins, ..self }
    }

    fn name(&self) -> String {
        [Some(self.program), self.argument].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Two runs of one program differ by so much of their time.
const NOISE: f64 = 0.1;

/// What is waited for is no more than that, so that no cure brings anything.
const LITTLE: &str = "little";

const LATE: [&str; 2] = ["partner_late", "partner_late"];

const QUESTIONS: &[Question] = &[
    // UCX of Debian's MPICH reads the copy out of the sender's memory, and nobody waits
    question("copies", ["progress_target", LITTLE], true),
    question("dynamic_exchange", LATE, false).said_as("Even out the work"),
    question("epochs", ["call_earlier", "call_earlier"], false),
    question("fence", LATE, false),
    question("nonblocking_collective", ["test", "test"], true),
    question("onesided", ["partner_late", "progress_target"], true),
    question("onesided", ["partner_late", "progress_target"], true).with("flush_all"),
    question("other_waits", LATE, false).with("iprobe").said_as("Even out the work"),
    question("other_waits", LATE, false).with("dup").said_as("Even out the work"),
    question("other_waits", LATE, false).with("detach").said_as("Even out the work"),
    question("probing", ["make_nonblocking", "make_nonblocking"], false),
    question("polling", ["test", "test"], true),
    question("serial_root", LATE, false),
    question("small_sends", ["make_nonblocking", "partner_late"], true),
    question("turns", LATE, false).said_as("Let ranks need each other"),
    question("uneven", LATE, false).said_as("Even out the work"),
];

/// The report of a recorded run.
fn report(mpi: &Mpi, question: &Question, arguments: &[&str], place: &Path) -> Value {
    let program = build::app(mpi, &format!("field/{}", question.program));
    let job =
        Job::new(mpi, 2, program, Form::Preload, place).args(question.argument).args(arguments);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    ask("report", &job.run_directory())
}

#[test]
fn what_is_said_first_is_what_an_expert_says() {
    for (question, mpi) in share!(pairs(QUESTIONS, &mpi::debian())) {
        let what = format!("{} under {}", question.name(), mpi.name);
        trials::up_to_three(&what, || is_answered(mpi, &question));
    }
}

fn is_answered(mpi: &Mpi, question: &Question) {
    let [first, second] = [place(), place()];
    let asked = report(mpi, question, &[], first.path());
    let cured = report(mpi, question, &["cured"], second.path());
    let [took, takes] = [&asked, &cured].map(|report| number(&report["totals"], "run_ns"));
    let said = &asked["summary"]["first"]
        .as_u64()
        .map_or(Value::Null, |at| asked["advice"][at as usize].clone());
    let best = asked["bounds"]["perfect_progress_ns"].as_f64();
    let best = best.map(|best| 1.0 - best / number(&asked["bounds"], "base_ns"));
    let gained = 1.0 - takes / took;
    println!(
        "{:24} {:9} {:20} {:>5.1} % of the run; best progress {}; cured {:>5.1} % less",
        question.name(),
        mpi.name,
        text(said, "cure"),
        100.0 * said["share"].as_f64().unwrap_or(0.0),
        best.map_or("unknown".to_owned(), |gain| format!("{:.1} % less", 100.0 * gain)),
        100.0 * gained
    );
    if let Some(best) = best.filter(|_| question.is_progress) {
        assert!(gained < best + NOISE, "{}: {gained:.3} gained, {best:.3} at best", mpi.name);
    }
    let cure = question.cures[usize::from(mpi.name != "openmpi")];
    if cure == LITTLE {
        let promised = number(&said["predicted"], "high");
        assert!(promised.max(gained) < NOISE, "{}: {:#}", mpi.name, asked["advice"]);
        return;
    }
    assert_eq!(text(said, "cure"), cure, "{}: {:#}", mpi.name, asked["advice"]);
    assert!(text(said, "headline").starts_with(question.begins), "{}: {said:#}", mpi.name);
}
