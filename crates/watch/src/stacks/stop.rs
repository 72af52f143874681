//! The stacks of a process, copied from outside.
//!
//! A thread that sleeps in a system call is not stopped: proc_pid_syscall(5) says where its stack is, and it stands still by itself.
//! A thread that runs, or whose callers cannot be told without its registers, is stopped for as long as copying takes, by a thread of
//! our own (`tracer.rs`).

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::condition;
pub use super::copied::{Outcome, Registers, ThreadCopy, ToStop};
use super::maps::{read_memory, Mapping};
use super::python::PythonLines;
use super::tracer;
use lapscope_data::state::{state_of_thread, SystemState};

/// So much of a stack is copied, from its top on; then as much as was copied before, where its callers go on behind that, or on
/// another stack, as that of a handler of a signal.
const FIRST_BYTES: usize = 512 << 10;
const MOST_BYTES: usize = 16 << 20;
/// A thread that is held is not copied for longer.
const MOST_HELD: Duration = Duration::from_millis(10);
/// Threads of a process that are looked at, the first one among them.
const MOST_THREADS: usize = 128;

impl ThreadCopy {
    /// Copies on while its callers are in memory that was not copied, which `reader` says; up to a deadline.
    fn complete(
        &mut self,
        pid: i64,
        maps: &[Mapping],
        reader: &impl StackReader,
        by: Option<Instant>,
    ) {
        let mut copied = FIRST_BYTES;
        while copied < MOST_BYTES && by.map_or(true, |it| Instant::now() < it) {
            let Some(address) = reader.goes_on_at(self) else { return };
            let Ok(bytes) = read_stack(pid, address, copied, maps) else { return };
            self.stack.push((address, bytes));
            copied *= 2;
        }
    }
}

/// What is asked of a thread while it stands.
pub trait StackReader {
    fn python_lines(&self, tid: i64) -> PythonLines;

    /// An address from which on memory is needed that was not copied, as its callers are there.
    fn goes_on_at(&self, thread: &ThreadCopy) -> Option<u64>;
}

/// What was copied of a process.
#[derive(Debug, Default)]
pub struct ProcessCopy {
    pub threads: Vec<ThreadCopy>,
    /// Threads that could not be copied, and why.
    pub failed: Vec<(i64, String)>,
    /// Threads that were not looked at, as there are so many, or as it took too long.
    pub left_out: usize,
    /// The longest that one was stopped for; zero: none was.
    pub held: Duration,
    /// What it had mapped before any thread was stopped.
    maps: Vec<Mapping>,
}

impl ProcessCopy {
    /// Copies threads that need not be stopped, and says which do; `is_enough` says of one whether its callers can be told.
    ///
    /// # Errors
    /// There is no such process any more.
    pub fn begin(
        pid: i64,
        process: usize,
        reader: &impl StackReader,
        mut is_enough: impl FnMut(&ThreadCopy) -> bool,
    ) -> io::Result<(ProcessCopy, Vec<ToStop>)> {
        let tids = threads(pid)?;
        let first = tids.first().copied().unwrap_or(pid);
        let maps = fs::read_to_string(format!("/proc/{first}/maps"))?;
        let maps: Vec<Mapping> = Mapping::parse_all(&maps).collect();
        let left_out = tids.len().saturating_sub(MOST_THREADS);
        let mut copy = ProcessCopy { left_out, maps, ..ProcessCopy::default() };
        let mut wanted = Vec::new();
        for tid in tids.into_iter().take(MOST_THREADS) {
            let Some(system) = state_of_thread(pid, tid) else { continue }; // it has just ended
            match asleep(pid, tid, &system, &copy.maps, reader) {
                Some(thread) if is_enough(&thread) || !tracer::may_stop(&system) => {
                    copy.threads.push(thread);
                }
                asleep => wanted.push(ToStop { process, tid, is_first: tid == first, asleep }),
            }
        }
        Ok((copy, wanted))
    }

    /// One that is stopped now.
    ///
    /// # Errors
    /// Its stack cannot be read.
    pub fn stopped(
        &self,
        tid: i64,
        system: SystemState,
        registers: Registers,
        reader: &impl StackReader,
    ) -> io::Result<ThreadCopy> {
        let by = Instant::now() + MOST_HELD;
        let top = read_stack(tid, registers.stack, FIRST_BYTES, &self.maps)?;
        let stack = vec![(registers.stack, top)];
        let python = reader.python_lines(tid);
        let mut thread = ThreadCopy { tid, system, registers, stack, python };
        thread.complete(tid, &self.maps, reader, Some(by));
        Ok(thread)
    }

    /// Of a thread that runs: it is to be stopped once more. `None`: it does not run.
    pub fn again(pid: i64, process: usize, tid: i64) -> Option<(ProcessCopy, ToStop)> {
        state_of_thread(pid, tid).filter(|it| it.state == 'R')?;
        let maps = fs::read_to_string(format!("/proc/{tid}/maps")).ok()?;
        let maps = Mapping::parse_all(&maps).collect();
        let copy = ProcessCopy { maps, ..ProcessCopy::default() };
        Some((copy, ToStop { process, tid, is_first: false, asleep: None }))
    }

    pub fn take(&mut self, wanted: ToStop, outcome: Outcome) {
        match outcome {
            Outcome::Copied(thread, held) => {
                self.held = self.held.max(held);
                self.threads.push(*thread);
            }
            Outcome::Ended => {}
            Outcome::TooLate => match wanted.asleep {
                Some(thread) => self.threads.push(thread),
                None => self.left_out += 1,
            },
            Outcome::Failed(_) if condition::is_of_the_kernel(wanted.tid) => {}
            Outcome::Failed(error) => {
                self.threads.extend(wanted.asleep);
                self.failed.push((wanted.tid, why(&error)));
            }
        }
    }
}

/// Threads of a process that live, the first one first: that may have ended before the others, pthread_exit(3).
///
/// # Errors
/// There is no such process.
pub fn threads(pid: i64) -> io::Result<Vec<i64>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut tids: Vec<i64> = tasks.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable_by_key(|&tid| (tid != pid, tid));
    let first = tids.first().copied();
    let has_ended = |tid: i64| state_of_thread(pid, tid).map_or(true, |it| it.state == 'Z');
    if first.is_some_and(has_ended) {
        tids.remove(0);
    }
    Ok(tids)
}

fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "it may not be traced: a debugger holds it, it is another user's, or \
            /proc/sys/kernel/yama/ptrace_scope is not 0 (as root: sysctl kernel.yama.ptrace_scope=0), or the container has no \
            SYS_PTRACE (docker run --cap-add SYS_PTRACE)"
            .to_owned(),
        Some(libc::ENOSYS) => "a filter of system calls (seccomp) forbids it".to_owned(),
        _ => error.to_string(),
    }
}

/// A thread of a process that lives, by which the kernel tells of it also where the first one has ended.
pub fn living(pid: i64) -> i64 {
    threads(pid).ok().and_then(|tids| tids.first().copied()).unwrap_or(pid)
}

// --- without stopping --------------------------------------------------------------------------------------------------

/// `None`: it runs, or may not be asked.
fn asleep(
    pid: i64,
    tid: i64,
    system: &SystemState,
    maps: &[Mapping],
    reader: &impl StackReader,
) -> Option<ThreadCopy> {
    let place = format!("/proc/{pid}/task/{tid}/syscall");
    let before = fs::read_to_string(&place).ok()?;
    let mut last = before.split_whitespace().rev();
    let mut address = || u64::from_str_radix(last.next()?.strip_prefix("0x")?, 16).ok();
    let (instruction, stack) = (address()?, address()?);
    let registers = Registers { instruction, stack, ..Registers::default() };
    let mut thread = ThreadCopy {
        tid,
        system: system.clone(),
        registers,
        stack: vec![(stack, read_stack(pid, stack, FIRST_BYTES, maps).ok()?)],
        python: reader.python_lines(tid),
    };
    thread.complete(pid, maps, reader, None);
    let after = fs::read_to_string(&place).ok()?;
    (before == after).then_some(thread)
}

// --- memory ------------------------------------------------------------------------------------------------------------

/// Up to the end of its mapping, of those that were there before any thread was stopped.
fn read_stack(pid: i64, begin: u64, most: usize, maps: &[Mapping]) -> io::Result<Vec<u8>> {
    let end = maps
        .iter()
        .find(|mapping| mapping.addresses.contains(&begin))
        .ok_or_else(|| io::Error::other("its stack pointer points to no memory"))?
        .addresses
        .end;
    read_memory(pid, begin, ((end - begin) as usize).min(most))
}
