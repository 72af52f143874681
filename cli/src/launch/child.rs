//! A child in our own process group, with signals passed on to it exactly once.
//!
//! Ctrl-C, `timeout` and `kill -- -GROUP` reach the child as well as us; `kill PID` reaches us alone. Nothing in a
//! signal tells which it was, and a launcher that gets one twice gives up hard: the second SIGTERM within five seconds
//! makes Open MPI's mpirun exit and leave its ranks behind. So a third process stands in the group, a witness that
//! tells us which signals it got: those the child has got too.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use libc::{c_int, sigset_t};

const FORWARDED: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// How long the witness may take to tell of a signal that the whole group got.
const WITNESS_WAIT: Duration = Duration::from_millis(100);

/// The same signal again so soon is the same event: `timeout` signals its child and then the group.
const SAME_EVENT: Duration = Duration::from_millis(300);

/// Runs `command` and waits for its end; signals that reach this process are passed on meanwhile. To be called while
/// this process has one thread.
///
/// # Errors
/// The command could not be started.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let forwarded: Vec<c_int> =
        FORWARDED.into_iter().filter(|&signal| !is_ignored(signal)).collect();
    // SAFETY: SIGCHLD ignored (inherited) would make children unwaitable; signal() only resets that.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let waited_for = signal_set(forwarded.iter().copied().chain([libc::SIGCHLD]));
    let before = block(&waited_for);
    let witness = Witness::start(&signal_set(forwarded.iter().copied()));
    let restore = move || {
        // SAFETY: `before` is a valid set; sigprocmask is safe between fork and exec.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    let spawned = unsafe { command.pre_exec(restore) }.spawn();
    let status = spawned.and_then(|mut child| wait(&mut child, &waited_for, witness.as_ref()));
    drop(witness);
    restore()?;
    status
}

fn wait(child: &mut Child, set: &sigset_t, witness: Option<&Witness>) -> io::Result<ExitStatus> {
    let mut last: Option<(c_int, Instant)> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // SAFETY: siginfo_t is plain data that the kernel fills in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: both point to live values.
        let signal = unsafe { libc::sigwaitinfo(set, &mut info) };
        if signal <= 0 || signal == libc::SIGCHLD {
            continue;
        }
        let again = last.is_some_and(|(l, at)| l == signal && at.elapsed() < SAME_EVENT);
        let group_got_it = again
            || info.si_code == libc::SI_KERNEL
            || witness.is_some_and(|witness| witness.saw(signal));
        if !group_got_it {
            // SAFETY: the child has not been waited for, so the pid is still its own.
            unsafe { libc::kill(child.id() as libc::pid_t, signal) };
        }
        last = Some((signal, Instant::now()));
    }
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
