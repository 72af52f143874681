//! Processes that are odd, and machines that forbid to look: the answer is a partial one, and says why.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

use lapscope_tests::launch::place;
use lapscope_tests::{build, child, mpi, paths, say};

/// A process that is looked at, and killed when it goes out of scope.
struct Odd {
    started: Child,
    /// What it prints further.
    output: BufReader<ChildStdout>,
    /// Of itself, or of the child that is looked at.
    pid: i64,
}

impl Odd {
    /// A program that prints the number of the process to be looked at.
    fn start(program: &Path, args: &[&str]) -> Odd {
        let mut command = child::command(program);
        let started = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut started = started.expect("it starts");
        let mut line = String::new();
        let mut output = BufReader::new(started.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("a line");
        let pid = line.trim().parse().expect("a number");
        thread::sleep(Duration::from_millis(100)); // it comes to where it stays
        Odd { started, output, pid }
    }

    fn tool(kind: &str) -> Odd {
        Odd::start(&build::tool("odd"), &[kind])
    }

    /// What `lapscope hang`, behind these words of a command line, says of it.
    fn looked_at<S: AsRef<OsStr>>(&self, front: &[S]) -> Result<Value, String> {
        let mut line: Vec<OsString> = front.iter().map(|it| it.as_ref().to_owned()).collect();
        line.push(paths::lapscope().into());
        let mut command = child::command(&line[0]);
        command.args(&line[1..]).args(["hang", "--interval", "0.2", "--format", "json"]);
        let output =
            command.args(["--pid", &self.pid.to_string()]).output().expect("lapscope runs");
        match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(answer) => {
                lapscope_fixture::documented::check(&answer.to_string());
                Ok(answer)
            }
            Err(_) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Its only rank, and the notes.
    fn seen(&self) -> (Value, String) {
        let answer = self.looked_at::<&str>(&[]).unwrap_or_else(|error| panic!("{error}"));
        (answer["ranks"][0].clone(), answer["notes"].to_string())
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        let _ = self.started.kill();
        let _ = self.started.wait();
    }
}

fn has(program: &str) -> bool {
    let found = mpi::find_program(program).is_some();
    if !found {
        say!("NOT TESTED: stacks::odd: no {program}");
    }
    found
}

fn functions(rank: &Value) -> Vec<&str> {
    let frames = rank["frames"].as_array().expect("frames");
    frames.iter().map(|frame| frame["function"].as_str().unwrap_or("")).collect()
}

#[test]
fn deep_stacks() {
    let (rank, notes) = Odd::tool("deep").seen();
    assert_eq!((functions(&rank).len(), functions(&rank).last()), (256, Some(&"main")));
    assert!(rank["depth"].as_u64().is_some_and(|depth| depth > 20_000), "{}", rank["depth"]);
    assert_eq!((&rank["doing"], &rank["sleeps_in"]), (&"asleep".into(), &"pause".into()));
    assert_eq!(notes, "[]");
    let (rank, notes) = Odd::tool("endless").seen();
    assert!(!functions(&rank).contains(&"main"), "{rank:#}");
    assert!(notes.contains("more callers than anybody looks at"), "{notes}");
}

/// The handler has a stack of its own.
#[test]
fn a_handler_of_a_signal() {
    let (rank, notes) = Odd::tool("signal").seen();
    let functions = functions(&rank);
    let at = |name: &str| functions.iter().position(|it| *it == name);
    let places =
        ["sleeps", "on_signal", "<signal handler called>", "is_interrupted", "main"].map(at);
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{functions:?}");
    assert_eq!((notes.as_str(), &rank["stands"]), ("[]", &Value::Bool(true)));
}

/// Its functions are those that run, and of lines nothing is said, whether it is gone or another one is there.
#[test]
fn one_that_was_replaced() {
    for is_there in [true, false] {
        let place = place();
        let program = place.path().join("program");
        fs::copy(build::tool("odd"), &program).expect("a copy");
        let odd = Odd::start(&program, &["asleep"]);
        fs::remove_file(&program).expect("it goes");
        if is_there {
            fs::copy("/bin/true", &program).expect("another one");
        }
        let (rank, notes) = odd.seen();
        assert!(notes.contains("was replaced on disk since it was started"), "{notes}");
        let frames = rank["frames"].as_array().expect("frames");
        let name = program.to_str().expect("a name");
        let own: Vec<&Value> = frames.iter().filter(|it| it["module"] == name).collect();
        assert_eq!(own.len(), 3, "{rank:#}");
        assert!(own.iter().all(|it| it["line"].is_null() && it["file"].is_null()), "{rank:#}");
        assert_eq!(functions(&rank).last(), Some(&"main"), "{rank:#}");
    }
}

/// What can be read is the stack of what carries out its instructions.
#[test]
fn one_that_another_program_carries_out() {
    let odd = build::tool("odd");
    let odd = odd.to_str().expect("a name");
    let emulator = format!("qemu-{}", std::env::consts::ARCH);
    for (program, args) in [("valgrind", &["-q", "--tool=none"][..]), (emulator.as_str(), &[])] {
        if !has(program) {
            continue;
        }
        let started = Odd::start(program.as_ref(), &[args, &[odd, "asleep"]].concat());
        let (rank, notes) = started.seen();
        assert_eq!((&rank["doing"], &rank["frames"]), (&"unknown".into(), &Value::Array(vec![])));
        assert!(notes.contains(program), "{notes}");
    }
}

/// Its functions have no names, and all are there.
#[test]
fn a_stripped_one() {
    if !has("strip") {
        return;
    }
    let place = place();
    let stripped = place.path().join("stripped");
    let made = child::command("strip").arg("-o").args([&stripped, &build::tool("odd")]).status();
    assert!(made.is_ok_and(|status| status.success()), "strip");
    let (rank, notes) = Odd::start(&stripped, &["asleep"]).seen();
    let frames = rank["frames"].as_array().expect("frames");
    let own: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["module"].as_str().is_some_and(|it| it.ends_with("/stripped")))
        .collect();
    assert_eq!(own.len(), 3, "sleeps, calls, main: {rank:#}");
    assert!(own.iter().all(|frame| frame["function"].is_null()), "{rank:#}");
    assert_eq!((&rank["doing"], notes.as_str()), (&Value::from("asleep"), "[]"));
}

/// Calls pause(2), as a program of the 32-bit system calls, and prints nothing.
const OF_32_BITS: &str = ".globl _start\n_start: mov $29, %eax\nint $0x80\njmp _start\n";

#[test]
fn one_of_32_bits() {
    if !has("as") || !has("ld") {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    fs::write(at("small.s"), OF_32_BITS).expect("a file");
    let run = |program: &str, args: &[&OsStr]| {
        let status = child::command(program).args(args).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let (source, object, program) = (at("small.s"), at("small.o"), at("small"));
    let assembled = run("as", &["--32".as_ref(), "-o".as_ref(), object.as_ref(), source.as_ref()]);
    let linked = assembled
        && run(
            "ld",
            &["-m".as_ref(), "elf_i386".as_ref(), "-o".as_ref(), program.as_ref(), object.as_ref()],
        );
    let start = || child::command(&program).stdout(Stdio::piped()).spawn().ok();
    let Some(mut started) = linked.then(start).flatten() else {
        return say!("NOT TESTED: stacks::odd: no 32-bit programs here");
    };
    let pid = i64::from(started.id());
    let output = BufReader::new(started.stdout.take().expect("a pipe"));
    let (rank, notes) = Odd { started, output, pid }.seen();
    assert_eq!((&rank["doing"], &rank["call"]), (&Value::from("unknown"), &Value::Null));
    assert!(notes.contains("stacks of 32-bit processes cannot be read"), "{notes}");
}

/// Calls that the kernel ends with EINTR when a tracer stops their thread, and does not begin again.
#[test]
fn no_call_is_interrupted() {
    if cfg!(not(target_arch = "x86_64")) {
        return say!("NOT TESTED: stacks::odd::no_call_is_interrupted: calls can be begun again on x86-64 alone");
    }
    let mut odd = Odd::tool("naps");
    let looks = (0..8).map(|_| odd.seen()).filter(|(rank, _)| rank["doing"] != "unknown").count();
    drop(odd.started.stdin.take());
    let mut said = String::new();
    odd.output.read_to_string(&mut said).expect("its output");
    println!("{said}, {looks} times two looks");
    assert!(said.starts_with("0 of ") && looks == 8, "{said}, {looks}");
}

/// More threads on processors than processors: a look is bounded, and threads go on after it.
#[test]
fn one_with_many_threads() {
    let odd = Odd::start(&build::tool("odd"), &["spins", "40"]);
    let begun = Instant::now();
    let (rank, notes) = odd.seen();
    println!("40 threads: {:?}, {notes}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(rank["threads"], 41, "{rank:#}");
    let others = rank["other_threads"].as_array().expect("threads");
    assert!(others.len() <= 40 && others.iter().any(|it| it["doing"] == "computes"), "{rank:#}");
    let stats = fs::read_dir(format!("/proc/{}/task", odd.pid)).expect("its threads").flatten();
    let stats = stats.filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
    assert!(stats.into_iter().all(|it| it.contains("TracerPid:\t0") && !it.contains("(stopped)")));
}

#[test]
fn one_whose_first_thread_has_ended() {
    let (rank, notes) = Odd::tool("headless").seen();
    assert_eq!((&rank["doing"], &rank["threads"]), (&Value::from("asleep"), &Value::from(1)));
    assert!(rank["frames"].to_string().contains("outlives_main"), "{rank:#}");
    assert!(rank["command"].as_str().is_some_and(|it| it.ends_with("odd headless")), "{rank:#}");
    assert_eq!(notes, "[]");
}

#[test]
fn those_that_run_nothing() {
    let (rank, notes) = Odd::tool("zombie").seen();
    assert_eq!(rank["doing"], "unknown", "{rank:#}");
    assert!(notes.contains("its parent has not asked how (a zombie)"), "{notes}");
    let stat = fs::read_to_string("/proc/2/stat").unwrap_or_default();
    if !stat.contains("(kthreadd)") {
        return say!("NOT TESTED: stacks::odd: no thread of the kernel is seen here");
    }
    let mut odd = Odd::tool("asleep");
    odd.pid = 2;
    let (rank, notes) = odd.seen();
    assert_eq!(rank["doing"], "unknown", "{rank:#}");
    assert!(notes.contains("it is a thread of the kernel"), "{notes}");
}

#[test]
fn one_that_ends_meanwhile() {
    let mut odd = Odd::tool("asleep");
    let lapscope = paths::lapscope();
    let mut command = child::command(lapscope);
    command.args(["hang", "--interval", "1", "--format", "json", "--pid", &odd.pid.to_string()]);
    let looking = command.stdout(Stdio::piped()).spawn().expect("lapscope runs");
    thread::sleep(Duration::from_millis(500));
    odd.started.kill().expect("it is there");
    odd.started.wait().expect("it ends");
    let output = looking.wait_with_output().expect("it ends");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    assert_eq!(answer["ranks"][0]["doing"], "unknown", "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(output.status.success() && notes.contains("it has ended"), "{answer:#}");
    let gone = odd.looked_at::<&str>(&[]).expect_err("there is no such process");
    assert!(gone.contains("there is no process"), "{gone}");
}

/// It is on a processor, so that it would have to be stopped: who traces it already may be waiting for that.
#[test]
fn one_that_is_traced() {
    let (rank, notes) = Odd::tool("traced").seen();
    assert_eq!(rank["doing"], "unknown", "{rank:#}");
    assert!(notes.contains("a debugger holds it"), "{notes}");
}

/// As a container's filter of system calls refuses what looks at other processes.
#[test]
fn where_looking_is_refused() {
    let (odd, front) = (Odd::tool("asleep"), build::tool("without"));
    for (error, way_out) in [("EPERM", "SYS_PTRACE"), ("ENOSYS", "seccomp")] {
        let front = [front.as_os_str(), "debugging".as_ref(), error.as_ref()];
        let answer = odd.looked_at(&front).unwrap_or_else(|said| panic!("{said}"));
        assert_eq!(answer["ranks"][0]["doing"], "unknown", "{answer:#}");
        assert!(answer["notes"].to_string().contains(way_out), "{error}: {answer:#}");
    }
}

#[test]
fn one_of_another_user() {
    // SAFETY: asks, and changes nothing
    if unsafe { libc::geteuid() } != 0 || !has("setpriv") {
        return say!(
            "NOT TESTED: stacks::odd::one_of_another_user: only root has other users' processes"
        );
    }
    let odd = Odd::tool("asleep");
    let front = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let said = odd.looked_at(&front).expect_err("it may not be looked at");
    assert!(said.contains("of another user: ask as that user, or as root"), "{said}");
}

/// A Python without a symbol of its own, under a name: its frames of C stay, and that is said.
fn python_without(symbol: &str, name: &str, said: &str) {
    let bytes = fs::read("/usr/bin/python3").unwrap_or_default();
    let named = [b"\0", symbol.as_bytes(), b"\0"].concat();
    let Some(at) = bytes.windows(named.len()).position(|part| part == named) else {
        return say!("NOT TESTED: stacks::odd: no Python in /usr/bin that has {symbol}");
    };
    let place = place();
    let program = place.path().join(name);
    fs::copy("/usr/bin/python3", &program).expect("a copy");
    let mut changed = bytes;
    changed[at + 1] = b'X';
    fs::write(&program, changed).expect("a program");
    let script = "import os, time; print(os.getpid(), flush=True); time.sleep(100)";
    let (rank, notes) = Odd::start(&program, &["-c", script]).seen();
    assert!(notes.contains("lines of Python are not known") && notes.contains(said), "{notes}");
    let frames = rank["frames"].as_array().expect("frames");
    let is_own = |frame: &&Value| frame["module"].as_str().is_some_and(|it| it.ends_with(name));
    assert!(frames.iter().filter(is_own).count() > 5, "{rank:#}");
    assert!(frames.iter().all(|frame| frame["file"] != "<string>"), "{rank:#}");
}

/// As one that comes after all that are known, and one before them.
#[test]
fn pythons_of_unknown_versions() {
    python_without("Py_Version", "python3.7", "(this is Python 3.7)");
    python_without("_PyRuntime", "python3.6", "those of Python 3.6 cannot be read");
}
