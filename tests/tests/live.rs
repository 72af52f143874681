//! `lapscope live` in a terminal, on a job that runs: what it shows, that it leaves the terminal as it was, and that the job does
//! not notice, whatever happens to it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use lapscope_tests::launch::{lapscope, place, Form, Job, Outcome};
use lapscope_tests::mpi::Mpi;
use lapscope_tests::pty::Terminal;
use lapscope_tests::trials::up_to_three;
use lapscope_tests::{build, child, paths};

/// A busy machine may take long to do what takes an instant.
const PATIENCE: Duration = Duration::from_secs(20);
const LEFT: &str = "\x1b[?1049l";

fn live(run: &Path, arguments: &[&str]) -> Command {
    let mut command = child::command(paths::lapscope());
    command.arg("live").arg(run).args(arguments).env("TERM", "xterm-256color");
    command
}

fn in_terminal(run: &Path) -> Terminal {
    Terminal::start(live(run, &["--interval", "0.2"]), 80, 24)
}

/// `until.c` on two ranks, while `watch` watches its run directory.
fn beside(mpi: &Mpi, watch: impl FnOnce(&Path)) -> Outcome {
    let place = place();
    let stop = place.path().join("stop");
    let program = build::app(mpi, "until");
    let job = Job::new(mpi, 2, program, Form::Preload, place.path()).args([&stop]);
    let run = job.run_directory();
    thread::scope(|scope| {
        let outcome = scope.spawn(|| job.run());
        let begin = Instant::now();
        while !run.join("rank-1.spool").exists() && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
        let watched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| watch(&run)));
        fs::write(&stop, "").expect("a file that ends the program");
        let outcome = outcome.join().expect("a launch");
        watched.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome
    })
}

fn check_unharmed(outcome: &Outcome) {
    let is_own = |line: &str| line.ends_with(" rounds") && line.split(' ').count() == 2;
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(outcome.code == 0 && lines.len() == 1 && is_own(lines[0]), "{outcome:?}");
}

fn check_screens(run: &Path) {
    let mut terminal = in_terminal(run);
    terminal.await_text("exposed", PATIENCE);
    terminal.await_text("MPI_Waitall", PATIENCE);
    terminal.await_text("until.c:", PATIENCE);
    for (columns, lines, text) in
        [(20, 5, "RANKS"), (3, 1, "lap"), (200, 60, "SITES"), (80, 24, "SITES")]
    {
        terminal.written.clear();
        terminal.resize(columns, lines);
        terminal.await_text(text, PATIENCE);
        let screen = terminal.screen();
        let is_within = screen.lines().all(|line| line.chars().count() <= usize::from(columns));
        assert!(is_within && screen.lines().count() <= usize::from(lines), "{columns}:\n{screen}");
    }
    for (keys, text) in [("h", "the job goes on"), ("x", "SITES"), ("s", "by least exposed")] {
        terminal.press(keys);
        terminal.await_text(text, PATIENCE);
    }
    terminal.press("\x1b[Bpb\x03"); // an arrow, pause, put together, Ctrl-C
    let status = terminal.end(PATIENCE).expect("Ctrl-C ends it");
    let written = String::from_utf8_lossy(&terminal.written).into_owned();
    assert!(status.success() && written.contains(LEFT) && terminal.is_as_before(), "{status}");
}

fn check_ends(run: &Path) {
    let mut terminal = in_terminal(run);
    terminal.await_text("RANKS", PATIENCE);
    let pid = libc::pid_t::try_from(terminal.child.id()).expect("a process id");
    // SAFETY: a signal to a process that this test started
    unsafe { libc::kill(pid, libc::SIGTERM) };
    let status = terminal.end(PATIENCE).expect("SIGTERM ends it");
    let written = String::from_utf8_lossy(&terminal.written).into_owned();
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    assert!(written.contains(LEFT) && terminal.is_as_before(), "{written}");
    let mut broken = in_terminal(run);
    broken.await_text("RANKS", PATIENCE);
    broken.hang_up();
    let status = broken.end(PATIENCE).expect("it does not stay behind");
    assert_eq!(status.signal(), Some(libc::SIGHUP));
    for pause in [0, 30, 170, 410] {
        let mut killed = in_terminal(run);
        thread::sleep(Duration::from_millis(pause));
        killed.child.kill().expect("a child to kill");
        assert!(killed.end(PATIENCE).is_some());
    }
}

fn check_answers(run: &Path) {
    let text = lapscope(["live".as_ref(), run.as_os_str(), "--once".as_ref()]);
    assert!(
        text.contains("2 ranks on ") && text.contains("MPI_Waitall exchange until.c:"),
        "{text}"
    );
    assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80));
    let as_json = ["--once", "--format", "json"].map(AsRef::as_ref);
    let printed = lapscope(["live".as_ref(), run.as_os_str()].into_iter().chain(as_json));
    let json: Value = serde_json::from_str(&printed).expect("a line of JSON");
    let rate = |key: &str| json["total"][key].as_f64().unwrap_or_else(|| panic!("{key}: {json:#}"));
    assert_eq!((json["is_over"].as_bool(), json["world_size"].as_i64()), (Some(false), Some(2)));
    assert!(
        rate("messages_per_s") > 0.0 && rate("calls_per_s") > rate("messages_per_s"),
        "{json:#}"
    );
    // a message of this program has 1000 bytes
    assert!((rate("bytes_per_s") / rate("messages_per_s") - 1000.0).abs() < 1.0, "{json:#}");
    assert!((0.0..=1.0).contains(&rate("exposed_share")), "{json:#}");
    let sites = json["sites"].as_array().expect("sites");
    assert!(sites.iter().any(|site| site["call"] == "MPI_Waitall"), "{json:#}");
    assert!(json["command"].as_str().is_some_and(|it| it.contains("until")), "{json:#}");
}

#[test]
fn the_job_does_not_notice() {
    for mpi in mpis!() {
        let outcome = beside(mpi, |run| {
            check_answers(run);
            check_screens(run);
            check_ends(run);
        });
        check_unharmed(&outcome);
    }
}

#[test]
fn nothing_is_there_yet_and_then_no_more() {
    let place = place();
    let run = place.path().join("run");
    let mut terminal = in_terminal(&run);
    terminal.await_text("is not there yet", PATIENCE);
    fs::create_dir(&run).expect("a directory");
    terminal.await_text("no rank has written into", PATIENCE);
    terminal.press("q");
    assert!(terminal.end(PATIENCE).is_some_and(|status| status.success()));
    assert!(terminal.is_as_before());
    for (variable, value) in [("TERM", "dumb"), ("TERM", "")] {
        let mut command = live(&run, &[]);
        command.env(variable, value);
        let mut terminal = Terminal::start(command, 80, 24);
        let status = terminal.end(PATIENCE).expect("it ends");
        let text = String::from_utf8_lossy(&terminal.written).into_owned();
        assert!(status.code() == Some(1) && text.contains("live --once"), "{text}");
    }
    let output = live(&run, &[]).output().expect("lapscope runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text.contains("live --once"), "{text}");
}

/// `silent.c` under `lapscope run --watchdog 1`.
fn watched(mpi: &Mpi, place: &Path, options: &[&str], silence: [&str; 2]) -> Outcome {
    let program = build::app(mpi, "silent");
    let run = place.join("run");
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let mut line = words(&["run", "--watchdog", "1"]);
    line.extend(words(options));
    line.extend(["--dir".into(), run.into_os_string(), "--".into()]);
    line.extend(
        mpi.launch_line(2, &[program.into_os_string(), silence[0].into(), silence[1].into()]),
    );
    let mut job = Job::alone(paths::lapscope(), Form::Bare, place).args(line);
    for (name, value) in mpi.environment {
        job = job.env(name, *value);
    }
    job.run()
}

fn barks(outcome: &Outcome) -> usize {
    let is_bark =
        |line: &&String| line.starts_with("watchdog: no MPI call of any rank has ended for");
    outcome.said.iter().filter(is_bark).count()
}

#[test]
fn the_watchdog_speaks_once_for_each_silence_and_harms_nobody() {
    // on a machine that is busy a silence of three seconds may be over before it was looked at
    let speaks = |mpi: &Mpi| {
        let place = place();
        let outcome = watched(mpi, place.path(), &[], ["2", "3000"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "done\n"), "{outcome:?}");
        assert_eq!(barks(&outcome), 2, "{outcome:?}");
        let text = &outcome.stderr;
        assert!(text.contains("VERDICT") && text.contains("rank 1"), "{outcome:?}");
        assert!(text.contains("MPI_Recv") && text.contains("silent.c:"), "{outcome:?}");
    };
    for mpi in mpis!() {
        up_to_three(&format!("two silences under {}", mpi.name), || speaks(mpi));
    }
}

#[test]
fn the_watchdog_ends_the_job_where_it_is_told_to() {
    for mpi in mpis!() {
        let place = place();
        let outcome = watched(mpi, place.path(), &["--watchdog-kill"], ["1", "50000"]);
        assert_eq!((outcome.code, barks(&outcome)), (124, 1), "{outcome:?}");
        let is_said = |what: &str| outcome.said.iter().any(|line| line.contains(what));
        assert!(is_said("ending the job (--watchdog-kill)"), "{outcome:?}");
        let run = place.path().join("run");
        assert!(run.join("rank-0.db").exists() && run.join("rank-1.db").exists(), "{outcome:?}");
        let text = lapscope(["pending".as_ref(), run.as_os_str()]);
        assert!(text.contains("MPI_Recv") && text.contains("silent.c:"), "{text}");
    }
}
