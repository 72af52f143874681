//! A child in our own process group, with signals passed on to it exactly once.
//!
//! Ctrl-C, `timeout` and `kill -- -GROUP` reach the child as well as us; `kill PID` reaches us alone. Nothing in a
//! signal tells which it was, and a launcher that gets one twice gives up hard: the second SIGTERM within five seconds
//! makes Open MPI's mpirun exit and leave its ranks behind. So a third process stands in the group, a witness that
//! tells us which signals it got: those the child has got too.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use libc::{c_int, sigset_t};

const FORWARDED: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// How long the witness may take to tell of a signal that the whole group got.
const WITNESS_WAIT: Duration = Duration::from_millis(100);

/// The same signal again so soon is the same event: `timeout` signals its child and then the group.
const SAME_EVENT: Duration = Duration::from_millis(300);

/// Signals by which somebody wants us to end.
const ENDING: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// A child that was asked to end and has not after so long is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Runs `command` and waits for its end; signals that reach this process are passed on meanwhile. To be called while
/// this process has one thread.
///
/// # Errors
/// The command could not be started.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    HeldSignals::hold().run(command, None).map(|ended| ended.status)
}

/// As [`run`], while `tick` is called now and then; when it says so the child is ended.
///
/// # Errors
/// As [`run`].
pub fn run_watched(command: &mut Command, tick: &dyn Fn() -> bool) -> io::Result<ChildEnd> {
    HeldSignals::hold().run(command, Some(Watch { limit: None, tick }))
}

/// As shells report it: 128 + N for a death by signal N.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// How a child has ended.
#[derive(Debug, Clone, Copy)]
pub struct ChildEnd {
    pub status: ExitStatus,
    /// Ctrl-C or the like reached this process meanwhile.
    pub interrupted: bool,
    /// It took longer than it was given, or somebody wanted it to end, and was ended for that.
    pub out_of_time: bool,
}

/// What is to happen while a child runs.
pub struct Watch<'a> {
    /// How long it may take; `None`: as long as it likes.
    pub limit: Option<Duration>,
    /// Called now and then; whether the child is to be ended.
    pub tick: &'a dyn Fn() -> bool,
}

impl Watch<'_> {
    /// Rare enough not to disturb what is measured meanwhile.
    const EVERY: Duration = Duration::from_millis(500);
}

/// Signals that this process does not get at once, so that it can pass them on to children. To be made while the process has
/// one thread: threads that are made later hold them too.
pub struct HeldSignals {
    before: sigset_t,
    forwarded: sigset_t,
    waited_for: sigset_t,
}

impl HeldSignals {
    pub fn hold() -> HeldSignals {
        let forwarded: Vec<c_int> =
            FORWARDED.into_iter().filter(|&signal| !is_ignored(signal)).collect();
        // SAFETY: SIGCHLD ignored (inherited) would make children unwaitable; signal() only resets that.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let waited_for = signal_set(forwarded.iter().copied().chain([libc::SIGCHLD]));
        let before = block(&waited_for);
        HeldSignals { before, forwarded: signal_set(forwarded.iter().copied()), waited_for }
    }

    /// Whether Ctrl-C or the like has come while no child was there.
    pub fn is_interrupted(&self) -> bool {
        // SAFETY: sigpending fills the set, which is then only read.
        unsafe {
            let mut pending: sigset_t = std::mem::zeroed();
            libc::sigpending(&mut pending) == 0
                && ENDING.iter().any(|&signal| libc::sigismember(&pending, signal) == 1)
        }
    }

    /// Runs `command`, which gets its signals as this process got them before, and waits for its end.
    ///
    /// # Errors
    /// The command could not be started.
    pub fn run(&self, command: &mut Command, watch: Option<Watch<'_>>) -> io::Result<ChildEnd> {
        let witness = Witness::start(&self.forwarded);
        let before = self.before;
        let restore = move || {
            set_mask(&before);
            Ok(())
        };
        // SAFETY: the closure makes one system call and allocates nothing.
        let mut child = unsafe { command.pre_exec(restore) }.spawn()?;
        wait(&mut child, &self.waited_for, witness.as_ref(), watch)
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        set_mask(&self.before);
    }
}

fn set_mask(mask: &sigset_t) {
    // SAFETY: a valid set; safe between fork and exec.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

fn wait(
    child: &mut Child,
    set: &sigset_t,
    witness: Option<&Witness>,
    watch: Option<Watch<'_>>,
) -> io::Result<ChildEnd> {
    let mut last: Option<(c_int, Instant)> = None;
    let mut timer = Timer { began: Instant::now(), asked: None };
    let mut interrupted = false;
    loop {
        if let Some(status) = child.try_wait()? {
            // what the whole group got may have ended the child before it was looked at here
            interrupted |= pending(set).any(|signal| ENDING.contains(&signal));
            return Ok(ChildEnd { status, interrupted, out_of_time: timer.asked.is_some() });
        }
        if let Some(watch) = &watch {
            let is_unwanted = (watch.tick)();
            timer.look(child, watch.limit, is_unwanted);
        }
        let (signal, code) = next_signal(set, watch.is_some().then_some(Watch::EVERY));
        if signal <= 0 || signal == libc::SIGCHLD {
            continue;
        }
        interrupted |= ENDING.contains(&signal);
        let again = last.is_some_and(|(l, at)| l == signal && at.elapsed() < SAME_EVENT);
        let group_got_it =
            again || code == libc::SI_KERNEL || witness.is_some_and(|witness| witness.saw(signal));
        if !group_got_it {
            send(child, signal);
        }
        last = Some((signal, Instant::now()));
    }
}

/// The next signal of `set` and where it came from; not positive when none came in time.
fn next_signal(set: &sigset_t, within: Option<Duration>) -> (c_int, c_int) {
    // SAFETY: siginfo_t is plain data that the kernel fills in; all pointers are to live values.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = match within {
            None => libc::sigwaitinfo(set, &mut info),
            Some(within) => {
                let mut time: libc::timespec = std::mem::zeroed();
                time.tv_sec = within.as_secs() as libc::time_t;
                time.tv_nsec = within.subsec_nanos().into();
                libc::sigtimedwait(set, &mut info, &time)
            }
        };
        (signal, info.si_code)
    }
}

/// Takes those signals of `set` that have come.
fn pending(set: &sigset_t) -> impl Iterator<Item = c_int> + '_ {
    std::iter::from_fn(move || Some(next_signal(set, Some(Duration::ZERO)).0))
        .take_while(|&signal| signal > 0)
}

/// Ends a child that takes too long: first asks, so that a launcher can end its ranks.
struct Timer {
    began: Instant,
    asked: Option<Instant>,
}

impl Timer {
    fn look(&mut self, child: &Child, limit: Option<Duration>, is_unwanted: bool) {
        let is_over = limit.is_some_and(|limit| self.began.elapsed() > limit);
        match self.asked {
            None if is_over || is_unwanted => {
                send(child, libc::SIGTERM);
                self.asked = Some(Instant::now());
            }
            Some(asked) if asked.elapsed() > GRACE => send(child, libc::SIGKILL),
            _ => {}
        }
    }
}

/// To a child that has not been waited for, so that the pid is still its own.
fn send(child: &Child, signal: c_int) {
    // SAFETY: a signal to a process that we have started.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

/// A process that does nothing but tell which signals it gets.
struct Witness {
    pid: libc::pid_t,
    pipe: OwnedFd,
}

impl Witness {
    /// `None` when there is no room for another process: signals are then passed on without its advice.
    fn start(set: &sigset_t) -> Option<Witness> {
        let mut ends = [0; 2];
        // SAFETY: pipe2 fills the array; the descriptors are ours alone.
        let pipe = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return None;
            }
            [OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])]
        };
        let [read, write] = pipe;
        // SAFETY: getpid and fork in a process with one thread; the child only makes system calls.
        let parent = unsafe { libc::getpid() };
        match unsafe { libc::fork() } {
            -1 => None,
            0 => bear_witness(set, write.as_raw_fd(), parent),
            pid => Some(Witness { pid, pipe: read }),
        }
    }

    /// Whether the witness got `signal` too.
    fn saw(&self, signal: c_int) -> bool {
        let until = Instant::now() + WITNESS_WAIT;
        loop {
            let left = until.saturating_duration_since(Instant::now()).as_millis() as c_int;
            let mut poll =
                libc::pollfd { fd: self.pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let mut told = 0u8;
            // SAFETY: one pollfd; one byte to read into.
            let read = unsafe {
                libc::poll(&mut poll, 1, left) == 1
                    && libc::read(poll.fd, std::ptr::from_mut(&mut told).cast(), 1) == 1
            };
            if !read || c_int::from(told) == signal {
                return read;
            }
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: it is our child and has not been waited for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

fn bear_witness(set: &sigset_t, pipe: c_int, parent: libc::pid_t) -> ! {
    // SAFETY: system calls on values that live to the end of the process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"lapscope-signal".as_ptr());
        for fd in 0..3 {
            libc::close(fd); // or a pipeline that waits for our output to end would wait for the witness
        }
        while libc::getppid() == parent {
            let signal = libc::sigwaitinfo(set, std::ptr::null_mut()) as u8;
            libc::write(pipe, std::ptr::from_ref(&signal).cast(), 1);
        }
        libc::_exit(0)
    }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: reads the disposition into a zeroed struct.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

fn signal_set(signals: impl Iterator<Item = c_int>) -> sigset_t {
    // SAFETY: sigemptyset initialises the set before anything reads it.
    unsafe {
        let mut set: sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        signals.for_each(|signal| {
            libc::sigaddset(&mut set, signal);
        });
        set
    }
}

fn block(set: &sigset_t) -> sigset_t {
    // SAFETY: both sets are valid.
    unsafe {
        let mut before: sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, set, &mut before);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        let code = |raw| exit_code(ExitStatus::from_raw(raw));
        assert_eq!((code(3 << 8), code(libc::SIGKILL)), (3, 137));
    }
}
