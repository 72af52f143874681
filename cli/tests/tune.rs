//! `lapscope tune` with a launcher that runs nothing and leaves runs that were made by hand.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::fixture::text;
use lapscope_fixture::library::library;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::tables::{Injection, Injector, Rank};
use lapscope_fixture::{call_id, edit_rank, Fixture};
use serde_json::Value;
use tempfile::TempDir;

const MS: i64 = 1_000_000;
/// What tune chooses for a program of 2.1 s whose steps take 20 ms.
const SLOT: i64 = 80 * MS;
const STEPS: i64 = 100;
const BYTES: i64 = 1 << 20;

const ISEND: &str = "MPI_Isend";
const IRECV: &str = "MPI_Irecv";
const WAITALL: &str = "MPI_Waitall";
const ISSEND: &str = "MPI_Issend";

/// A program whose two ranks exchange a message in each step, which stands still while they compute.
#[derive(Clone, Copy)]
pub struct Program {
    mode: Option<&'static str>,
    bytes: i64,
    /// What a step takes: computation, and the wait with and without injection.
    compute: i64,
    wait_on: i64,
    wait_off: i64,
}

pub const PLAIN: Program =
    Program { mode: None, bytes: BYTES, compute: 10 * MS, wait_on: 10 * MS, wait_off: 10 * MS };

/// Which slot of a pair is on: as if by chance.
fn is_on(moment: i64) -> bool {
    let pair = moment / (2 * SLOT);
    (moment / SLOT % 2 == 0) == ((pair * 7919) % 13 % 2 == 0)
}

impl Program {
    /// Rows, and the moment of the end.
    fn rank(&self, number: i64) -> (Rows, i64) {
        let mut rows = Rows::default();
        let call = if number == 0 { (ISEND, "send") } else { (IRECV, "recv") };
        let (large, peer) = ((call.0, call.1, self.bytes, 1 - number, 7), 1 - number);
        let at_once = (ISSEND, "send", self.bytes, peer, 8);
        let (mut now, mut arms) = (MS, Vec::new());
        for step in 0..STEPS {
            let arm = is_on(now);
            if number == 0 {
                // complete at once: tests have nothing to move
                rows.complete(WAITALL, now + 10_000, 1_000, &[(at_once, now, 1_000, 0)]);
                arms.push(arm);
            }
            let begin = now + 20_000;
            let wait = if arm && self.mode.is_some() { self.wait_on } else { self.wait_off };
            let wait = wait + step % 7 * 10_000;
            rows.complete(WAITALL, begin + self.compute, wait, &[(large, begin, 1_000, 0)]);
            arms.push(arm);
            now = begin + self.compute + wait;
        }
        if self.mode.is_some() {
            rows.inject(&arms);
        }
        (rows, now + MS)
    }

    pub fn write(&self, directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        for number in 0..2 {
            let (rows, end_ns) = self.rank(number);
            Rank { end_ns, ..Rank::plain(number) }.write(directory, |file| {
                rows.write(file);
                if let Some(mode) = self.mode {
                    inject(file, number, mode);
                }
            });
        }
    }
}

/// What the tests of a rank did.
fn inject(file: &Fixture, rank: i64, mode: &str) {
    file.insert(Injector {
        mode,
        clock: Some("perf"),
        ab_slot_ns: Some(SLOT),
        test_ns: Some(400),
        interrupt_ns: Some(2_000),
        check_ns: Some(300),
        spent_ns: 10 * MS,
        ..Injector::default()
    });
    let site = |call, path, tests, found| {
        file.insert(Injection {
            call_id: call_id(call),
            call_path_id: Some(path),
            requests: 50,
            tests,
            found,
            test_ns: 5_000,
            idle_ns: 1_000,
            interrupts: 500,
            deferred: 10,
            interrupt_ns: 100,
            ..Injection::default()
        });
    };
    if rank == 0 {
        site(ISEND, 1, 500, 400);
        site(ISSEND, 6, 300, 0);
    } else {
        site(IRECV, 2, 500, 400);
    }
}

/// A directory with a launcher in it, which leaves the run that is meant for the mode that it is told.
pub fn launcher(script: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mpirun");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    place
}

/// Whole runs take as long as the files `bare` and `injected` say.
const LEAVE_A_RUN: &str = "if [ -z \"$LAPSCOPE_DIR\" ]; then echo bare >>runs/whole; sleep $(cat runs/bare); exit; fi; \
     if [ \"$LAPSCOPE_CONVERT\" = off ]; then echo $LAPSCOPE_INJECT $LAPSCOPE_INJECT_AB >>runs/whole; sleep $(cat runs/injected); fi; \
     mkdir \"$LAPSCOPE_DIR\" && cp runs/$LAPSCOPE_INJECT/*.db \"$LAPSCOPE_DIR\" && \
     cat && echo printed with $LAPSCOPE_INJECT $LAPSCOPE_INJECT_INTERVAL_US $LAPSCOPE_INJECT_AB_MS";

fn place_with(programs: &[Program]) -> TempDir {
    let place = launcher(LEAVE_A_RUN);
    fs::create_dir(place.path().join("runs")).unwrap();
    whole_runs_take(&place, ["0.4", "0.1"]);
    for program in programs {
        program.write(&place.path().join("runs").join(program.mode.unwrap_or("off")));
    }
    place
}

/// Seconds, without lapscope and with injection.
fn whole_runs_take(place: &TempDir, [bare, injected]: [&str; 2]) {
    fs::write(place.path().join("runs/bare"), bare).unwrap();
    fs::write(place.path().join("runs/injected"), injected).unwrap();
}

/// The first gains most, the second loses all of it to what it costs while it is off, the third does nothing.
fn gaining() -> TempDir {
    let timer = Program { mode: Some("timer"), wait_on: MS, ..PLAIN };
    let slow = Program { compute: 20 * MS, mode: Some("thread"), ..timer };
    let calls = Program { mode: Some("calls"), ..PLAIN };
    place_with(&[PLAIN, timer, slow, calls])
}

pub fn command(place: &Path, arguments: &[&str]) -> Command {
    let mut command = crate::fixture::command(place, &["tune"]);
    command
        .args(arguments)
        .args(["--", "./mpirun", "-n", "2", "app"])
        .env("LAPSCOPE_LIBRARY", library())
        .stdin(Stdio::null());
    command
}

fn tune(place: &TempDir, arguments: &[&str]) -> Output {
    command(place.path(), arguments).output().unwrap()
}

/// Standard output of a search that succeeds.
fn printed(place: &TempDir, arguments: &[&str]) -> String {
    crate::fixture::printed(&mut command(place.path(), arguments))
}

pub fn answer(place: &TempDir, arguments: &[&str]) -> Value {
    let text = printed(place, &[&["--format", "json"], arguments].concat());
    serde_json::from_str(&text).expect("JSON alone on standard output")
}

/// What is left beside launcher and fixtures.
fn left(place: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(place.path()).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "mpirun" && name != "runs");
    names.sort();
    names
}

#[test]
fn the_best_setting_is_found_and_kept() {
    let place = gaining();
    let answer = answer(&place, &[]);
    assert_eq!(answer["found"], "gain", "{answer:#}");
    let runs = answer["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["run"].as_str().unwrap()).collect();
    let expected = [
        "2-timer-1000us",
        "3-thread-1000us",
        "4-calls-1000us",
        "5-timer-300us",
        "6-timer-3000us",
        "7-timer-1000us-policy",
    ];
    assert_eq!(names, expected);
    let best = &answer["best"];
    assert_eq!((&best["mode"], &best["interval_us"]), (&"timer".into(), &1000.into()));
    let promised = best["slots_gain"]["estimate"].as_f64().unwrap();
    assert!((0.35..0.5).contains(&promised), "9 of 20 ms: {promised}");
    let confirmation = &answer["confirmation"];
    assert_eq!(confirmation["pairs"].as_array().unwrap().len(), 3);
    assert_eq!((&confirmation["is_certain"], &confirmation["gain"]), (&true.into(), &best["gain"]));
    let gain = best["gain"]["estimate"].as_f64().unwrap();
    assert!(gain > 0.5, "whole runs take a quarter of the time: {gain}");
    let followed = &answer["advice"][0];
    assert_eq!((&followed["cure"], &followed["verified"]), (&"test".into(), &best["gain"]));
    let predicted = followed["predicted"]["high"].as_f64().unwrap();
    assert!((0.3..=0.5).contains(&predicted), "9 of 20 ms are at stake: {predicted}");
    let whole = fs::read_to_string(place.path().join("runs/whole")).unwrap();
    let in_turn = ["bare", "timer off", "timer off", "bare", "bare", "timer off"];
    assert_eq!(whole.lines().collect::<Vec<_>>(), in_turn);
    assert!(answer["notes"].to_string().contains("was at stake"), "half of it: {answer:#}");
    let hidden = runs[1]["hidden_cost"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&hidden), "30 ms a step for 20: {hidden}");
    assert!(answer["notes"].to_string().contains("MPI_THREAD_MULTIPLE"), "{answer:#}");
    let environment = best["environment"].to_string();
    assert!(environment.contains(r#""LAPSCOPE_INJECT_POLICY","value":"/"#), "{environment}");
    assert_eq!(left(&place), ["lapscope-policy"], "the runs are not kept");

    let policy = fs::read_to_string(place.path().join("lapscope-policy")).unwrap();
    assert!(policy.starts_with("# For LAPSCOPE_INJECT_POLICY"), "{policy}");
    let rules: Vec<&str> = policy.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rules[0], "default on");
    let has = |rule: &str| rules.iter().any(|line| line.starts_with(rule));
    assert!(has("on MPI_Isend app+0x100 aa11"), "{policy}");
    assert!(
        has("on MPI_Irecv libmpi.so.40+0x999 bb22"),
        "the return address, wherever it is: {policy}"
    );
    assert!(has("off MPI_Issend app+0x600 aa11"), "{policy}");
    assert_eq!(rules.len(), 4, "{policy}");
}

#[test]
fn the_text_can_be_pasted_and_says_where_the_runs_are() {
    let place = gaining();
    let output = tune(&place, &["--dir", "kept", "--modes", "timer", "--intervals", "1000,500"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    for line in ["export LAPSCOPE_INJECT=timer", "export LAPSCOPE_INJECT_INTERVAL_US=1000"] {
        assert!(out.lines().any(|found| found == line), "{out}");
    }
    assert!(
        out.contains("timer every 1000 us saves") && out.ends_with("The runs are in kept\n"),
        "{out}"
    );
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("WHOLE RUNS") && said.contains("in 3 pairs of whole runs"), "{out}");
    assert!(err.contains("confirming by 3 pairs") && err.contains("pair 3: "), "{err}");
    assert!(err.contains("at most 4 runs") && err.contains("slots of 80 ms"), "{err}");
    assert!(!out.contains("printed with"), "what the program prints is no result");
    let printed = |run: &str| fs::read_to_string(place.path().join("kept").join(run)).unwrap();
    assert_eq!(printed("1-plain.stdout"), "printed with off\n");
    assert_eq!(printed("3-timer-500us.stdout"), "printed with timer 500 80\n");
    assert_eq!(left(&place), ["kept", "lapscope-policy"]);
}

#[test]
fn what_whole_runs_do_not_show_is_no_gain() {
    let place = gaining();
    whole_runs_take(&place, ["0.1", "0.4"]);
    let arguments = ["--modes", "timer", "--intervals", "1000", "--pairs", "1"];
    let out = printed(&place, &arguments);
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("No certain gain: slots of one run promised 4"), "{out}");
    assert!(said.contains("in 1 pair of whole runs") && !said.contains("export"), "{out}");
    assert!(left(&place).is_empty(), "no policy: {:?}", left(&place));
    let answer = answer(&place, &arguments);
    assert_eq!(
        (&answer["found"], &answer["confirmation"]["is_certain"]),
        (&"unconfirmed".into(), &false.into())
    );
}

#[test]
fn without_whole_runs_what_slots_promise_is_called_so() {
    let place = gaining();
    let arguments = ["--modes", "timer", "--intervals", "1000", "--pairs", "0"];
    let out = printed(&place, &arguments);
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("may save 4") && said.contains("not confirmed by whole runs"), "{out}");
    assert!(said.contains("export LAPSCOPE_INJECT=timer") && !said.contains("WHOLE RUNS"), "{out}");
    let answer = answer(&place, &[&arguments[..], &["--force"]].concat());
    assert!(answer["best"]["gain"].is_null() && answer["confirmation"].is_null(), "{answer:#}");
    assert!(!place.path().join("runs/whole").exists());
}

#[test]
fn every_run_reads_standard_input_from_its_beginning() {
    let place = gaining();
    fs::write(place.path().join("runs/input"), "input\n").unwrap();
    let input = fs::File::open(place.path().join("runs/input")).unwrap();
    let arguments = ["--dir", "kept", "--modes", "timer,calls", "--pairs", "0"];
    let mut command = command(place.path(), &arguments);
    assert!(command.stdin(input).status().unwrap().success());
    for run in ["1-plain", "2-timer-1000us", "3-calls-1000us"] {
        let printed = place.path().join("kept").join(format!("{run}.stdout"));
        assert!(fs::read_to_string(printed).unwrap().starts_with("input\n"), "{run}");
    }
}

#[test]
fn a_bounded_search_is_shorter() {
    let place = gaining();
    let runs = |arguments: &[&str]| {
        let arguments = [arguments, &["--force", "--pairs", "0"]].concat();
        answer(&place, &arguments)["runs"].as_array().unwrap().len()
    };
    assert_eq!(runs(&["--runs", "2"]), 1);
    assert_eq!(
        runs(&["--modes", "calls"]),
        1,
        "what gains nothing is not tried at other intervals"
    );
    assert_eq!(runs(&["--modes", "timer", "--intervals", "2000"]), 2, "and the policy");
}

#[test]
fn where_nothing_gains_it_says_so() {
    let in_vain = |mode| Program { mode: Some(mode), ..PLAIN };
    let place = place_with(&[PLAIN, in_vain("calls"), in_vain("timer")]);
    let out = printed(&place, &["--modes", "timer"]);
    assert!(out.contains("No measurable gain") && !out.contains("export"), "{out}");
    assert!(!out.contains("Call MPI_Test"), "that is what was injected: {out}");
    assert!(left(&place).is_empty(), "no policy: {:?}", left(&place));
    let out = printed(&place, &["--modes", "calls"]);
    assert!(out.contains("Call MPI_Test"), "nobody has tested in the computation: {out}");
}

/// A program with an allocator in its executable is not interrupted: the reason, and the line to edit, are what remains.
#[test]
fn where_interrupts_are_refused_it_says_why_and_what_else_there_is() {
    let place = place_with(&[PLAIN, Program { mode: Some("timer"), ..PLAIN }]);
    for rank in 0..2 {
        edit_rank(&place.path().join("runs/timer"), rank, |file| {
            file.change(
                "UPDATE injector SET problem = 'the program''s executable brings a malloc'",
            );
            file.change("DELETE FROM injection");
        });
    }
    let out = printed(&place, &["--modes", "timer"]);
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "every rank: the program's executable brings a malloc";
    assert!(said.contains("No measurable gain") && said.contains(note), "{out}");
    assert!(said.contains("Call MPI_Test"), "{out}");
}

#[test]
fn where_nothing_can_gain_it_stops_after_the_first_run() {
    let small = place_with(&[Program { bytes: 1000, ..PLAIN }]);
    let out = printed(&small, &[]);
    assert!(
        out.contains("no request is as large as 64.0 KiB (--min-bytes), the largest is of 1000 B"),
        "{out}"
    );
    assert!(out.contains("try --min-bytes 1000.") && out.contains("Call MPI_Test"), "{out}");
    assert!(!out.contains("RUNS"), "{out}");

    let exposed = place_with(&[Program { compute: 0, ..PLAIN }]);
    assert_eq!(answer(&exposed, &[])["hopeless"], "no_computation");
    let hidden = place_with(&[Program { wait_off: 10_000, ..PLAIN }]);
    assert_eq!(answer(&hidden, &[])["hopeless"], "nothing_lost");
    assert_eq!(answer(&hidden, &[])["found"], "nothing_to_gain");
}

#[test]
fn short_runs_are_said_to_be_too_short() {
    let place = gaining();
    let output = tune(&place, &["--modes", "timer", "--runs", "2", "--set", "inject_ab_ms=500"]);
    let out = text(&output.stdout);
    assert!(out.contains("4 slots of 500 ms fit into it"), "{out}");
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let place = launcher("echo must not run; touch ran");
    let error = |arguments: &[&str], code| {
        let output = tune(&place, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(output.stdout.is_empty() && !place.path().join("ran").exists());
        text(&output.stderr)
    };
    assert!(error(&["--modes", "hope"], 2).contains("hope"));
    assert!(error(&["--intervals", "5"], 2).contains("20"));
    assert!(error(&["--set", "injekt=on"], 2).contains("no such option"));
    fs::write(place.path().join("lapscope-policy"), "mine").unwrap();
    assert!(error(&[], 1).contains("lapscope-policy is there already"));
    assert_eq!(fs::read_to_string(place.path().join("lapscope-policy")).unwrap(), "mine");
    fs::create_dir(place.path().join("kept")).unwrap();
    assert!(error(&["--policy", "other", "--dir", "kept"], 1).contains("kept cannot be made"));
    let output =
        command(place.path(), &["--policy", "other"]).env("PMI_RANK", "0").output().unwrap();
    assert!(text(&output.stderr).contains("this is a rank of a job already"));
}

#[test]
fn a_run_that_fails_is_named_and_its_exit_code_passed_on() {
    let place = launcher("echo to stdout; echo to stderr >&2; exit 7");
    let output = tune(&place, &["--dir", "kept"]);
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(7), 0));
    assert!(error.contains("to stdout\nto stderr\n"), "{error}");
    assert!(error.contains("run 1-plain failed with exit code 7"), "{error}");
    assert!(error.contains("the runs so far are in kept"), "{error}");
    let silent = tune(&launcher("true"), &[]);
    assert!(text(&silent.stderr).contains("nothing was recorded"), "{}", text(&silent.stderr));
    assert_eq!(silent.status.code(), Some(1));
}

#[test]
fn a_run_that_hangs_is_ended() {
    let place = launcher("echo waiting; exec sleep 100");
    let output = tune(&place, &["--timeout", "1"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("waiting\n") && error.contains("run 1-plain took longer than 1 s"),
        "{error}"
    );
    assert_eq!(left(&place).len(), 1, "what is there is kept");
}

#[test]
fn an_interrupt_ends_the_run_and_keeps_what_is_there() {
    let place = launcher("trap 'echo interrupted >got; exit 130' INT; : >ready; sleep 100 & wait");
    let mut command = command(place.path(), &[]);
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while !place.path().join("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a signal to the group that this test has started.
    assert_eq!(unsafe { libc::kill(-(child.id() as i32), libc::SIGINT) }, 0);
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{error}");
    assert!(error.contains("interrupted") && error.contains("the runs so far are in"), "{error}");
    assert!(place.path().join("got").exists(), "the run got it too");
}
