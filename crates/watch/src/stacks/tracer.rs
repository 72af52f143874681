//! Stops threads of another process for a moment: ptrace(2).
//!
//! The tracer is a thread of its own: when that ends, in whatever way, the kernel lets go of all that it traces. Several threads are
//! asked to stop at once, as each does so only when it has a processor; each goes on as soon as it is copied.
//!
//! A stop wakes a thread that has fallen asleep in a system call. The kernel begins most of these again by itself; others, such as
//! epoll_wait(2) or recv(2) with a time limit, it would end with EINTR: signal(7), "Interruption of system calls". These are begun again
//! from here, their time limits with them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::copied::{Outcome, Registers, ThreadCopy, ToStop};
use lapscope_data::state::{state_of_thread, SystemState};

/// Threads that are asked to stop at the same time. While one is copied the others that have stopped wait.
const AT_ONCE: usize = 8;
/// Whoever has not stopped by then and waits for a disk or the like is let go: it is in the kernel, where nothing stops it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Whoever waits for a processor is let go much later: a call of its may have ended, which is begun again when it has stopped.
const LONG_PATIENCE: Duration = Duration::from_secs(10);

/// Copies threads while they are stopped, each by `copy`; from `by` on only the first ones of processes are stopped.
pub fn copy_all<C>(wanted: Vec<ToStop>, by: Instant, copy: &C) -> Vec<(ToStop, Outcome)>
where
    C: Fn(&ToStop, SystemState, Registers) -> io::Result<ThreadCopy> + Sync,
{
    if wanted.is_empty() {
        return Vec::new();
    }
    let traced = std::thread::scope(|scope| {
        let tracer = || {
            hurry();
            let now = Instant::now();
            let (waiting, outcomes) = (Vec::new(), HashMap::new());
            Tracer { copy, waiting, outcomes, none_had_stopped: now }.run(&wanted, by)
        };
        scope.spawn(tracer).join()
    });
    let mut outcomes = traced.unwrap_or_default();
    let not_copied = || Outcome::Failed(io::Error::other("it could not be copied"));
    let outcome = |it: &ToStop| outcomes.remove(&it.tid).unwrap_or_else(not_copied);
    let found: Vec<Outcome> = wanted.iter().map(outcome).collect();
    wanted.into_iter().zip(found).collect()
}

/// Whether a thread may be stopped: not where a call in which it sleeps would end and cannot be begun again from here.
pub fn may_stop(system: &SystemState) -> bool {
    const BEGUN_BY_THE_KERNEL: [&str; 8] = [
        "futex",
        "ppoll",
        "pselect6",
        "nanosleep",
        "clock_nanosleep",
        "restart_syscall",
        "wait4",
        "waitid",
    ];
    let is_begun_again = cfg!(target_arch = "x86_64")
        || BEGUN_BY_THE_KERNEL.iter().any(|call| system.sleeps_in == *call);
    system.state != 'S' || is_begun_again
}

/// A thread that has been asked to stop.
struct Waiting<'a> {
    wanted: &'a ToStop,
    /// As it was then.
    system: SystemState,
    since: Instant,
}

struct Tracer<'a, C> {
    copy: &'a C,
    waiting: Vec<Waiting<'a>>,
    outcomes: HashMap<i64, Outcome>,
    /// When none of those that wait had stopped for certain.
    none_had_stopped: Instant,
}

impl<'a, C> Tracer<'a, C>
where
    C: Fn(&ToStop, SystemState, Registers) -> io::Result<ThreadCopy>,
{
    fn run(mut self, wanted: &'a [ToStop], by: Instant) -> HashMap<i64, Outcome> {
        const PAUSE: Duration = Duration::from_micros(50);
        let mut left = wanted.iter();
        loop {
            while self.waiting.len() < AT_ONCE {
                let Some(next) = left.next() else { break };
                self.ask(next, by);
            }
            if self.waiting.is_empty() {
                return self.outcomes;
            }
            let asked = Instant::now();
            match next_report() {
                Report::None => {
                    self.none_had_stopped = asked;
                    self.let_go();
                    std::thread::sleep(PAUSE);
                }
                Report::Of(tid, status) => self.take(tid, status),
                Report::NobodyLeft => self.all_have_ended(),
            }
        }
    }

    fn ask(&mut self, wanted: &'a ToStop, by: Instant) {
        let outcome = match state_of_thread(wanted.tid, wanted.tid) {
            None => Outcome::Ended,
            Some(_) if !wanted.is_first && Instant::now() >= by => Outcome::TooLate,
            Some(system) if !may_stop(&system) => Outcome::TooLate,
            Some(system) => match ask_to_stop(wanted.tid) {
                Ok(()) => {
                    return self.waiting.push(Waiting { wanted, system, since: Instant::now() })
                }
                Err(_) if is_gone(wanted.tid) => Outcome::Ended,
                Err(error) => Outcome::Failed(error),
            },
        };
        self.outcomes.insert(wanted.tid, outcome);
    }

    fn take(&mut self, tid: i64, status: libc::c_int) {
        let at = self.waiting.iter().position(|it| it.wanted.tid == tid);
        let waiting = at.map(|at| self.waiting.swap_remove(at));
        if !libc::WIFSTOPPED(status) {
            self.outcomes.entry(tid).or_insert(Outcome::Ended);
            return;
        }
        let held = Held { tid, signal: on_its_way(status) };
        let registers = read_registers(tid).inspect(|all| begin_again(tid, all));
        let Some(waiting) = waiting else { return }; // it has stopped too late
        let Waiting { wanted, system, since } = waiting;
        let copied = registers.and_then(|all| (self.copy)(wanted, system, registers_of(&all)));
        drop(held);
        let stopped = self.none_had_stopped.max(since).elapsed();
        let outcome = match copied {
            Ok(thread) => Outcome::Copied(Box::new(thread), stopped),
            Err(error) => Outcome::Failed(error),
        };
        self.outcomes.insert(tid, outcome);
    }

    fn let_go(&mut self) {
        let outcomes = &mut self.outcomes;
        self.waiting.retain(|it| {
            let (tid, waited) = (it.wanted.tid, it.since.elapsed());
            if waited < PATIENCE {
                return true;
            }
            let outcome = match state_of_thread(tid, tid).map(|it| it.state) {
                None | Some('Z' | 'X') => Outcome::Ended,
                Some('D') => failed("it is in the kernel, and cannot be stopped"),
                _ if waited > LONG_PATIENCE => failed("it gets no processor, to stop there"),
                _ => return true,
            };
            outcomes.insert(tid, outcome);
            false
        });
    }

    fn all_have_ended(&mut self) {
        let ended = self.waiting.drain(..).map(|it| (it.wanted.tid, Outcome::Ended));
        self.outcomes.extend(ended);
    }
}

/// Whoever has stopped waits for this thread, which is therefore to get a processor before others do, where this user may ask for
/// that: on a machine with more threads than processors it would wait for long.
fn hurry() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: `lowest` is read during the call, which changes this thread alone.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &lowest) };
}

fn failed(why: &str) -> Outcome {
    Outcome::Failed(io::Error::other(why))
}

fn is_gone(tid: i64) -> bool {
    state_of_thread(tid, tid).map_or(true, |it| matches!(it.state, 'Z' | 'X'))
}

// --- ptrace ------------------------------------------------------------------------------------------------------------

fn request(call: libc::c_uint, tid: i64, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests that are made here write to what `data` points to, if at all, which its caller owns.
    match unsafe { libc::ptrace(call, tid as libc::pid_t, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets go of a thread that has stopped, whatever happens in between.
struct Held {
    tid: i64,
    /// That was on its way to it, and that it gets now; 0: none.
    signal: libc::c_int,
}

impl Drop for Held {
    fn drop(&mut self) {
        let signal = usize::try_from(self.signal).unwrap_or(0);
        let _ = request(libc::PTRACE_DETACH, self.tid, 0, signal);
    }
}

/// The signal that a thread with this status was about to get: it has stopped for that, and not since it was asked to.
fn on_its_way(status: libc::c_int) -> libc::c_int {
    match status >> 16 {
        0 => libc::WSTOPSIG(status),
        _ => 0,
    }
}

fn ask_to_stop(tid: i64) -> io::Result<()> {
    seize(tid)?;
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Another lapscope that looks at the same process lets it go at once.
fn seize(tid: i64) -> io::Result<()> {
    const MOST: usize = 50;
    let is_traced = || {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|pid| pid.trim() != "0")
    };
    let mut tries = 0;
    loop {
        match request(libc::PTRACE_SEIZE, tid, 0, 0) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && tries < MOST => {
                if tries > 0 && !is_traced() {
                    return Err(error);
                }
                tries += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// What became of a thread that this one traces.
enum Report {
    None,
    Of(i64, libc::c_int),
    NobodyLeft,
}

fn next_report() -> Report {
    let (mut status, own) = (0, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG);
    // SAFETY: `status` is written during the call.
    match unsafe { libc::waitpid(-1, &mut status, own) } {
        -1 => Report::NobodyLeft,
        0 => Report::None,
        tid => Report::Of(tid.into(), status),
    }
}

type AllRegisters = libc::user_regs_struct;

fn read_registers(tid: i64) -> io::Result<AllRegisters> {
    const NT_PRSTATUS: usize = 1;
    // SAFETY: all zeros is a value of a struct of integers.
    let mut all: AllRegisters = unsafe { std::mem::zeroed() };
    let mut vector =
        libc::iovec { iov_base: std::ptr::addr_of_mut!(all).cast(), iov_len: size_of_val(&all) };
    request(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, std::ptr::addr_of_mut!(vector) as usize)?;
    Ok(all)
}

/// A call that the stop has ended says EINTR, and has done nothing, but for close(2), which has closed. The thread stands before the
/// kernel looks for what is to be begun again: ERESTARTNOHAND, of include/linux/errno.h, lets it do so with this one, unless the
/// thread gets a signal that it has a handler for.
#[cfg(target_arch = "x86_64")]
fn begin_again(tid: i64, all: &AllRegisters) {
    const ERESTARTNOHAND: i64 = 514;
    const RESULT: usize = std::mem::offset_of!(AllRegisters, rax);
    let (call, result) = (all.orig_rax as i64, all.rax as i64);
    if call >= 0 && call != libc::SYS_close && result == -i64::from(libc::EINTR) {
        let _ = request(libc::PTRACE_POKEUSER, tid, RESULT, -ERESTARTNOHAND as usize);
    }
}

/// The call's first argument is gone by then: [`may_stop`].
#[cfg(target_arch = "aarch64")]
fn begin_again(_: i64, _: &AllRegisters) {}

#[cfg(target_arch = "x86_64")]
fn registers_of(all: &AllRegisters) -> Registers {
    Registers {
        instruction: all.rip,
        stack: all.rsp,
        frame: Some(all.rbp),
        link: 0,
        preserved: [all.rbx, all.rbp, all.r12, all.r13, all.r14, all.r15].map(Some),
    }
}

#[cfg(target_arch = "aarch64")]
fn registers_of(all: &AllRegisters) -> Registers {
    Registers {
        instruction: all.pc,
        stack: all.sp,
        frame: Some(all.regs[29]),
        link: all.regs[30],
        preserved: [None; 6],
    }
}
