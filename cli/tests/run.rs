//! `lapscope run` on programs that know nothing of MPI: what they see, and what their exit tells.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::fixture::text;
use lapscope_fixture::child;
use lapscope_fixture::library::library;

fn lapscope(arguments: &[&str]) -> Command {
    let mut command = crate::fixture::bare(arguments);
    command.env("LAPSCOPE_LIBRARY", library());
    command
}

fn output(arguments: &[&str]) -> Output {
    lapscope(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

fn code(arguments: &[&str]) -> Option<i32> {
    output(arguments).status.code()
}

#[test]
fn exit_codes_are_the_programs() {
    assert_eq!(code(&["run", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["run", "--", "sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["run", "--", "./no-such-program"]), Some(127));
    assert_eq!(code(&["run", "--", "no-such-program"]), Some(127));
    assert_eq!(code(&["run", "--", "/etc/passwd"]), Some(126));
    assert_eq!(code(&["run"]), Some(2));
    assert_eq!(code(&["run", "--set", "MAX_MB=lots", "--", "true"]), Some(2));
}

#[test]
fn standard_output_and_input_are_the_programs() {
    let mut child = lapscope(&["run", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"line\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "line\n");
    assert!(stderr(&output).contains("nothing was recorded"), "{}", stderr(&output));
}

#[test]
fn options_become_variables_and_other_preloads_stay() {
    let other = library().with_file_name("other.so");
    std::fs::copy(library(), &other).unwrap();
    let script = "echo $LD_PRELOAD; echo $LAPSCOPE_MAX_MB $LAPSCOPE_CALLPATH $LAPSCOPE_CPU_TIME; echo $LAPSCOPE_DIR";
    let arguments =
        ["run", "--max-mb", "9", "--no-callpath", "--set", "cpu_time=on", "--", "sh", "-c", script];
    let output = lapscope(&arguments).env("LD_PRELOAD", &other).output().unwrap();
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{}:{}", library().display(), other.display()));
    assert_eq!(lines[1], "9 off on");
    assert!(lines[2].starts_with('/') && lines[2].contains("/lapscope-"), "{}", lines[2]);
    assert!(!Path::new(lines[2]).exists(), "the recorder makes the directory, not the command");
}

#[test]
fn injection_is_an_option() {
    for mode in ["timer", "auto"] {
        let output = output(&["run", "--inject", mode, "--", "sh", "-c", "echo $LAPSCOPE_INJECT"]);
        assert_eq!(stdout(&output).trim_end(), mode);
    }
    assert_eq!(code(&["run", "--inject", "hope", "--", "true"]), Some(2));
}

#[test]
fn misspelt_variables_are_named() {
    let output = lapscope(&["run", "--", "true"]).env("LAPSCOPE_MAXMB", "1").output().unwrap();
    assert!(stderr(&output).contains("did you mean LAPSCOPE_MAX_MB?"), "{}", stderr(&output));
    assert!(output.status.success());
}

#[test]
fn a_rank_becomes_the_program() {
    let mut command = lapscope(&["run", "--", "sh", "-c", "echo $$; kill -TERM $$"]);
    let mut child = command.env("PMI_RANK", "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text.trim(), child.id().to_string());
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM), "a real death, not 128 + 15");
}

#[test]
fn a_launcher_in_a_rank_is_a_child() {
    let directory = tempfile::tempdir().unwrap();
    let launcher = directory.path().join("mpirun");
    std::fs::write(&launcher, "#!/bin/sh\necho $$\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&launcher, mode).unwrap();
    let mut command = lapscope(&["run", "--", launcher.to_str().unwrap()]);
    let child = command.env("PMI_RANK", "0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.unwrap();
    let pid = child.id().to_string();
    assert_ne!(stdout(&child.wait_with_output().unwrap()).trim(), pid);
}

/// A program that says which signals it gets, in a process group of its own, once it is ready for them.
fn listener() -> (Child, impl Iterator<Item = String>) {
    let script = "for s in INT TERM USR1; do trap \"echo $s\" $s; done; echo ready; \
                  for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1; done; exit 5";
    let mut command = lapscope(&["run", "--", "bash", "-c", script]);
    let mut child =
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    (child, lines)
}

fn kill(target: i32, signal: i32) {
    // SAFETY: a signal to a process, or group, that this test has started.
    assert_eq!(unsafe { libc::kill(target, signal) }, 0);
}

#[test]
fn signals_to_lapscope_alone_are_passed_on() {
    let (mut child, lines) = listener();
    kill(child.id() as i32, libc::SIGUSR1);
    std::thread::sleep(Duration::from_millis(400));
    kill(child.id() as i32, libc::SIGTERM);
    assert_eq!(lines.collect::<Vec<_>>(), ["USR1", "TERM"]);
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn signals_to_the_group_arrive_once() {
    let (mut child, lines) = listener();
    kill(-(child.id() as i32), libc::SIGINT);
    assert_eq!(lines.collect::<Vec<_>>(), ["INT"]);
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_signal_to_lapscope_and_then_to_the_group_arrives_once() {
    let (mut child, lines) = listener(); // as timeout(1) does it
    kill(child.id() as i32, libc::SIGTERM);
    kill(-(child.id() as i32), libc::SIGTERM);
    assert_eq!(lines.collect::<Vec<_>>(), ["TERM"]);
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_static_program_is_warned_about() {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("a.c"), directory.path().join("a"));
    std::fs::write(&source, "int main(void) { return 3; }\n").unwrap();
    let mut compiler = child::command("cc");
    if !compiler.arg("-static").arg("-o").arg(&program).arg(&source).status().unwrap().success() {
        return; // no static C library here
    }
    let output = output(&["run", "--", program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("statically linked"), "{}", stderr(&output));
}
