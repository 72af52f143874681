//! The stacks of a process, copied from outside.
//!
//! A thread that sleeps in a system call is not stopped: proc_pid_syscall(5) says where its stack is, and it stands still by itself.
//! Stopping it could end the call early: epoll_wait(2) does not begin again, ptrace(2), BUGS. A thread that runs, or whose callers
//! cannot be told without its registers, is stopped for as long as copying takes. The tracer is a thread of its own: when that
//! ends, in whatever way, the kernel lets go of all that it traces.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::maps::{read_memory, Mapping};
use super::python::PythonLines;
use lapscope_data::state::{state_of_thread, SystemState};

/// So much of a stack is copied, from its top on; then as much as was copied before, where its callers go on behind that, or on
/// another stack, as that of a handler of a signal.
const FIRST_BYTES: usize = 512 << 10;
const MOST_BYTES: usize = 16 << 20;
/// A thread that is held is not copied for longer.
const MOST_HELD: Duration = Duration::from_millis(10);
/// A thread stops when it has a processor. One that has not stopped by then is let go: it is in the kernel, where nothing stops it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Registers from which callers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    pub instruction: u64,
    pub stack: u64,
    /// `None`: not known without stopping.
    pub frame: Option<u64>,
    /// The return address of a leaf function, where processors keep it in a register.
    pub link: u64,
    /// What functions preserve, as `registers.rs` numbers them; `None`: not known without stopping.
    pub preserved: [Option<u64>; 6],
}

/// A thread as it was.
#[derive(Debug, Clone)]
pub struct ThreadCopy {
    pub tid: i64,
    pub system: SystemState,
    pub registers: Registers,
    /// Parts of its stack, each with its address; the first from `registers.stack` on.
    pub stack: Vec<(u64, Vec<u8>)>,
    pub python: PythonLines,
}

impl ThreadCopy {
    /// A word of the stack.
    pub fn word(&self, address: u64) -> Option<u64> {
        self.stack.iter().find_map(|(begin, bytes)| {
            let at = usize::try_from(address.checked_sub(*begin)?).ok()?;
            let bytes = bytes.get(at..at.checked_add(8)?)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        })
    }

    /// Copies on while its callers are in memory that was not copied, which `wants` says; up to a deadline.
    fn complete(
        &mut self,
        pid: i64,
        maps: &[Mapping],
        wants: &impl Fn(&ThreadCopy) -> Option<u64>,
        deadline: Option<Instant>,
    ) {
        let mut copied = FIRST_BYTES;
        while copied < MOST_BYTES && deadline.map_or(true, |it| Instant::now() < it) {
            let Some(address) = wants(self) else { return };
            let Ok(bytes) = read_stack(pid, address, copied, maps) else { return };
            self.stack.push((address, bytes));
            copied *= 2;
        }
    }
}

/// What was copied of a process.
#[derive(Debug, Default)]
pub struct ProcessCopy {
    pub threads: Vec<ThreadCopy>,
    /// Threads that could not be copied, and why.
    pub failed: Vec<(i64, String)>,
    /// The longest that one was stopped for; zero: none was.
    pub held: Duration,
}

/// Copies one that runs, once more.
///
/// # Errors
/// It does not run, or may not be stopped.
pub fn copy_again(
    pid: i64,
    tid: i64,
    python: &(impl Fn(i64) -> PythonLines + Sync),
    wants: &(impl Fn(&ThreadCopy) -> Option<u64> + Sync),
) -> io::Result<(ThreadCopy, Duration)> {
    let asleep = || io::Error::other("it does not run");
    let system = state_of_thread(pid, tid).filter(|it| it.state == 'R').ok_or_else(asleep)?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let maps: Vec<Mapping> = Mapping::parse_all(&maps).collect();
    on_own_thread(|| stopped(pid, tid, system, &maps, python, wants))
}

/// The kernel lets go of what a thread traces when that ends, in whatever way.
fn on_own_thread<T: Send>(trace: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let traced = std::thread::scope(|scope| scope.spawn(trace).join());
    traced.unwrap_or_else(|_| Err(io::Error::other("it could not be copied")))
}

/// Copies the threads of a process; `is_enough` says of one that was not stopped whether its callers can be told, `python` reads
/// lines of one while it stands, `wants` says where its callers are in memory that was not copied.
///
/// # Errors
/// There is no such process any more.
pub fn copy(
    pid: i64,
    python: &(impl Fn(i64) -> PythonLines + Sync),
    wants: &(impl Fn(&ThreadCopy) -> Option<u64> + Sync),
    mut is_enough: impl FnMut(&ThreadCopy) -> bool,
) -> io::Result<ProcessCopy> {
    let tids = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut tids: Vec<i64> = tids.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let maps: Vec<Mapping> = Mapping::parse_all(&maps).collect();
    let mut copy = ProcessCopy::default();
    for tid in tids {
        let Some(system) = state_of_thread(pid, tid) else { continue }; // it has just ended
        let thread = asleep(pid, tid, &system, &maps, python, wants);
        if let Some(thread) = thread.filter(|thread| is_enough(thread)) {
            copy.threads.push(thread);
            continue;
        }
        match on_own_thread(|| stopped(pid, tid, system, &maps, python, wants)) {
            Ok((thread, held)) => {
                copy.held = copy.held.max(held);
                copy.threads.push(thread);
            }
            Err(_) if state_of_thread(pid, tid).is_none() => {}
            Err(error) => copy.failed.push((tid, why(&error))),
        }
    }
    Ok(copy)
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

// --- without stopping --------------------------------------------------------------------------------------------------

/// `None`: it runs, or may not be asked.
fn asleep(
    pid: i64,
    tid: i64,
    system: &SystemState,
    maps: &[Mapping],
    python: &impl Fn(i64) -> PythonLines,
    wants: &impl Fn(&ThreadCopy) -> Option<u64>,
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
        python: python(tid),
    };
    thread.complete(pid, maps, wants, None);
    let after = fs::read_to_string(&place).ok()?;
    (before == after).then_some(thread)
}

// --- stopped -----------------------------------------------------------------------------------------------------------

fn request(call: libc::c_uint, tid: i64, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests that are made here write to what `data` points to, if at all, which its caller owns.
    match unsafe { libc::ptrace(call, tid as libc::pid_t, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets go of a thread that has stopped, whatever happens in between.
struct Held(i64);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = request(libc::PTRACE_DETACH, self.0, 0, 0);
    }
}

/// The thread, and for how long it was stopped.
fn stopped(
    pid: i64,
    tid: i64,
    system: SystemState,
    maps: &[Mapping],
    python: &impl Fn(i64) -> PythonLines,
    wants: &impl Fn(&ThreadCopy) -> Option<u64>,
) -> io::Result<(ThreadCopy, Duration)> {
    seize(tid)?;
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)?;
    wait_until_stopped(tid)?;
    let begun = Instant::now();
    let held = Held(tid);
    let registers = read_registers(tid)?;
    let stack = vec![(registers.stack, read_stack(pid, registers.stack, FIRST_BYTES, maps)?)];
    let mut thread = ThreadCopy { tid, system, registers, stack, python: python(tid) };
    thread.complete(pid, maps, wants, Some(begun + MOST_HELD));
    drop(held);
    Ok((thread, begun.elapsed()))
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

fn wait_until_stopped(tid: i64) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is written during the call.
        match unsafe {
            libc::waitpid(tid as libc::pid_t, &mut status, libc::__WALL | libc::WNOHANG)
        } {
            -1 => return Err(io::Error::last_os_error()),
            0 if begun.elapsed() > PATIENCE => {
                return Err(io::Error::other("it is in the kernel, and cannot be stopped"));
            }
            0 => std::thread::sleep(Duration::from_micros(50)),
            _ if libc::WIFSTOPPED(status) => return Ok(()),
            _ => return Err(io::Error::other("it has just ended")),
        }
    }
}

fn read_registers(tid: i64) -> io::Result<Registers> {
    const NT_PRSTATUS: usize = 1;
    // SAFETY: all zeros is a value of a struct of integers.
    let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let mut vector =
        libc::iovec { iov_base: std::ptr::addr_of_mut!(all).cast(), iov_len: size_of_val(&all) };
    request(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, std::ptr::addr_of_mut!(vector) as usize)?;
    #[cfg(target_arch = "x86_64")]
    let registers = Registers {
        instruction: all.rip,
        stack: all.rsp,
        frame: Some(all.rbp),
        link: 0,
        preserved: [all.rbx, all.rbp, all.r12, all.r13, all.r14, all.r15].map(Some),
    };
    #[cfg(target_arch = "aarch64")]
    let registers = Registers {
        instruction: all.pc,
        stack: all.sp,
        frame: Some(all.regs[29]),
        link: all.regs[30],
        preserved: [None; 6],
    };
    Ok(registers)
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
