//! What a launch that does not end is at: what `lapscope hang` says of it, and the stacks of its processes.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{child, mpi};

/// Processes whose stacks are taken: those of the largest jobs say the same many times.
const MOST: usize = 24;

/// A command that is ended after so many seconds.
pub(crate) fn within(seconds: u32, program: impl AsRef<OsStr>) -> Command {
    let mut command = child::command("timeout");
    command.args(["-k", "5", &seconds.to_string()]).arg(program);
    command
}

/// What it prints on both streams, or why it could not be started.
fn printed(command: &mut Command) -> String {
    match command.output() {
        Ok(output) => [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat(),
        Err(error) => format!("{command:?}: {error}\n"),
    }
}

/// A process, told from a later one with the same number by the moment when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: libc::pid_t,
    parent: libc::pid_t,
    began: String,
}

impl Process {
    fn read(pid: libc::pid_t) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // behind the name, which may have blanks and brackets: the state, the parent, and the begin as the 20th
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self { pid, parent: fields.get(1)?.parse().ok()?, began: (*fields.get(19)?).into() })
    }

    /// Whether it has ended, and nobody has waited for it.
    #[cfg(test)]
    fn is_dead(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        status.contains("State:\tZ")
    }

    /// Whether its first thread waits for another one for good: ranks do so where they wait for their launcher, and hardly
    /// anywhere else, as MPI looks round while it waits.
    fn waits_for_a_thread(&self) -> bool {
        let call = fs::read_to_string(format!("/proc/{}/syscall", self.pid)).unwrap_or_default();
        let words: Vec<&str> = call.split(' ').collect();
        let is_futex = words[0].parse() == Ok(libc::SYS_futex);
        is_futex && words.get(4) == Some(&"0x0") // no limit
    }

    /// Kills it where it is still there.
    pub(crate) fn kill(&self) {
        if Self::read(self.pid).is_some_and(|now| now.began == self.began) {
            // SAFETY: signals one process, which descends from one that we have started
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
    }
}

/// A launcher and all that descends from it.
pub(crate) fn processes(launcher: libc::pid_t) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut others: Vec<Process> = pids.filter_map(Process::read).collect();
    let mut found = Vec::new();
    let mut parents = vec![launcher];
    found.extend(Process::read(launcher));
    while !parents.is_empty() {
        let (children, rest) = others.into_iter().partition(|it| parents.contains(&it.parent));
        others = rest;
        let children: Vec<Process> = children;
        parents = children.iter().map(|it| it.pid).collect();
        found.extend(children);
    }
    found
}

/// The stacks of those that wait for a thread for good: none else is disturbed.
pub(crate) fn stacks_of_waiting(job: &[Process]) -> String {
    job.iter().filter(|it| it.waits_for_a_thread()).map(|it| stacks(it.pid)).collect()
}

/// All that can be said of a job. `recorded`: the command, and where the job is recorded.
pub(crate) fn describe(job: &[Process], recorded: Option<&(PathBuf, PathBuf)>) -> String {
    let mut text = String::new();
    if let Some((lapscope, run)) = recorded {
        let mut command = within(60, lapscope);
        let said = printed(command.arg("hang").arg(run).env("NO_COLOR", "1"));
        writeln!(text, "lapscope hang says of it:\n{said}").expect("a string takes it");
    }
    for process in job.iter().take(MOST) {
        let line = fs::read_to_string(format!("/proc/{}/cmdline", process.pid));
        let line = line.unwrap_or_default().replace('\0', " ");
        let stacks = stacks(process.pid);
        writeln!(text, "process {}: {line}\n{stacks}", process.pid).expect("a string takes it");
    }
    text
}

/// What takes the stacks of all threads of a process, whose number goes behind.
const DEBUGGERS: [(&str, &[&str]); 2] = [
    ("gdb", &["-nx", "-batch", "-ex", "thread apply all backtrace 40", "-p"]),
    ("eu-stack", &["-n", "40", "-p"]),
];

/// The stacks of all its threads, from whatever can take them here.
fn stacks(pid: libc::pid_t) -> String {
    let pid = pid.to_string();
    for (name, args) in DEBUGGERS {
        if mpi::find_program(name).is_some() {
            let text = frames(&printed(within(20, name).args(args).arg(&pid)));
            if text.contains("\n#") {
                return text;
            }
        }
    }
    of_kernel(&pid)
}

/// The threads and their frames in what a debugger prints.
fn frames(printed: &str) -> String {
    let is_wanted = |line: &&str| ["Thread ", "TID ", "#"].iter().any(|it| line.starts_with(it));
    let short = |line: &str| line.chars().take(200).collect::<String>() + "\n";
    printed.lines().filter(is_wanted).map(short).collect()
}

/// What the kernel tells of each thread: its state, where it sleeps, its system call.
fn of_kernel(pid: &str) -> String {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let of_thread = |thread: fs::DirEntry| {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let status = read("status");
        let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or("State: ?");
        let number = thread.file_name();
        let (name, place) = (read("comm"), read("wchan"));
        let (call, stack) = (read("syscall"), read("stack"));
        format!(
            "thread {} {}: {state}, in {place}, call {call}{stack}",
            number.to_string_lossy(),
            name.trim()
        )
    };
    threads.flatten().map(of_thread).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::build;
    use crate::launch::{place, Form, Job};
    use crate::watched::until;

    /// Runs what ends long after the tests; what is said of it.
    fn hang(job: &Job<'_>) -> String {
        let text = job.try_run().expect_err("it hangs");
        assert!(text.contains("took longer than"), "{text}");
        text
    }

    fn hang_alone(script: &str) -> String {
        let place = place();
        let job = Job::alone("sh", Form::Bare, place.path()).args(["-c", script]);
        hang(&job.limit(Duration::from_millis(300)))
    }

    #[test]
    fn a_bare_program_is_found_with_its_children() {
        let text = hang_alone("sleep 3607; true");
        for expected in [": sh -c sleep 3607; true", ": sleep 3607"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(text.contains("\n#") || text.contains("State:"), "{text}");
        assert!(!text.contains("lapscope hang"), "{text}");
    }

    #[test]
    fn of_what_is_recorded_lapscope_says_what_hangs() {
        let mpi = mpi::all()[0];
        // longer each time: how soon a rank is there is not asked
        let mut seconds = [1, 4, 16, 64].into_iter();
        let is_seen = |seconds| {
            let place = place();
            let job = Job::new(mpi, 2, build::app(mpi, "until"), Form::Preload, place.path());
            let text = hang(&job.args(["no such file"]).limit(Duration::from_secs(seconds)));
            assert!(text.contains("lapscope hang says of it:\n"), "{text}");
            text.contains("VERDICT")
        };
        assert!(seconds.any(is_seen), "no verdict");
    }

    #[test]
    fn what_the_kernel_tells_will_do() {
        let text = of_kernel(&std::process::id().to_string());
        assert!(text.contains("State:") && text.contains(", call "), "{text}");
    }

    #[test]
    fn none_outlives_its_launch() {
        // a group of its own is out of reach of signals to the launcher's
        let text = hang_alone("setsid sleep 3608 & wait");
        let is_it = |line: &&str| line.ends_with("sleep 3608 ") && !line.contains("sh -c");
        let line = text.lines().find(is_it).expect("a process");
        let pid = line.split([' ', ':']).nth(1).expect("a number").parse().expect("a process id");
        let is_gone = || Process::read(pid).filter(|it| !it.is_dead()).is_none();
        assert!(until(Duration::from_secs(60), is_gone), "{text}"); // a signal takes its time
    }
}
