//! What the operating system says of the threads of a process of this host: proc_pid_stat(5),
//! proc_pid_status(5), proc_pid_wchan(5), proc_pid_syscall(5).

use std::fs;
use std::io;

use super::SystemState;
use crate::model::Nanos;
use crate::store::stat_fields;

/// `None`: the thread has ended, or nothing is told of it.
pub fn state_of(pid: i64, tid: i64) -> Option<SystemState> {
    let task = format!("/proc/{pid}/task/{tid}");
    let known = runs_or_not(pid, tid)?;
    let (sleeps_in, wakes_by_itself) = match known.state {
        'R' => (String::new(), false),
        _ => sleeps_in(&task),
    };
    let sleeps = sleeps(&fs::read_to_string(format!("{task}/status")).ok()?).unwrap_or_default();
    Some(SystemState { sleeps_in, wakes_by_itself, sleeps, ..known })
}

/// The same without where it sleeps, and how often it did: of that one file is read.
pub fn runs_or_not(pid: i64, tid: i64) -> Option<SystemState> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let Stat { state, ticks, begin } = parse_stat(&stat)?;
    let nanos = |ticks: i64| Nanos(ticks.saturating_mul(nanos_a_tick()));
    let age = Nanos(since_boot().0.saturating_sub(nanos(begin).0));
    let (sleeps_in, wakes_by_itself, sleeps) = Default::default();
    Some(SystemState { state, processor: nanos(ticks), sleeps_in, wakes_by_itself, sleeps, age })
}

/// Words of a file of a process that end with zeros: `cmdline`, `environ`.
///
/// # Errors
/// There is no such process, or it may not be asked.
pub fn words_of(pid: i64, file: &str) -> io::Result<Vec<String>> {
    let bytes = fs::read(format!("/proc/{pid}/{file}"))?;
    let words = bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|&byte| byte == 0);
    Ok(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// How often a thread has gone to sleep, from its file `status`.
fn sleeps(status: &str) -> Option<u64> {
    let count = |line: &str| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok();
    status.lines().find_map(count)
}

/// What is told of the threads of a process but for those known.
pub fn others(pid: i64, known: &[i64]) -> Vec<SystemState> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    tids.filter(|tid| !known.contains(tid)).filter_map(|tid| state_of(pid, tid)).collect()
}

/// What is in the file `stat` of a thread.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    /// On a processor.
    ticks: i64,
    /// Ticks from the start of the machine to its own.
    begin: i64,
}

fn parse_stat(text: &str) -> Option<Stat> {
    let fields = stat_fields(text)?;
    let ticks = |at: usize| fields.get(at)?.parse::<i64>().ok();
    let state = fields.first()?.chars().next()?;
    Some(Stat { state, ticks: ticks(11)?.saturating_add(ticks(12)?), begin: ticks(19)? })
}

/// Since the machine was started, suspended or not.
fn since_boot() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    Nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

fn nanos_a_tick() -> i64 {
    // SAFETY: asks for a number.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / ticks_a_second.max(1)
}

/// The system call, and whether it ends by itself; where that may not be asked for, the kernel's function.
fn sleeps_in(task: &str) -> (String, bool) {
    let call = fs::read_to_string(format!("{task}/syscall")).unwrap_or_default();
    if let Some((number, arguments)) = parse_call(&call) {
        let name = name_of(number).map_or_else(|| format!("system call {number}"), str::to_owned);
        let has_end = ends_by_itself(&name, &arguments);
        return (name, has_end);
    }
    let place = fs::read_to_string(format!("{task}/wchan")).unwrap_or_default();
    let place = Some(place.trim()).filter(|place| *place != "0").unwrap_or_default();
    (place.to_owned(), place.contains("nanosleep"))
}

/// The number of a system call and its arguments: proc_pid_syscall(5).
fn parse_call(text: &str) -> Option<(i64, Vec<u64>)> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok().filter(|&number| number >= 0)?;
    let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    Some((number, words.map_while(hexadecimal).collect()))
}

/// Whether a system call was given a time after which it ends.
fn ends_by_itself(name: &str, arguments: &[u64]) -> bool {
    let given = |place: usize| arguments.get(place).copied().unwrap_or_default();
    let is_not_negative = |milliseconds: u64| milliseconds as i32 >= 0;
    match name {
        // what goes on is nearly always a sleep that a signal or a tracer has interrupted
        "nanosleep" | "clock_nanosleep" | "restart_syscall" => true,
        "poll" => is_not_negative(given(2)),
        "epoll_wait" | "epoll_pwait" => is_not_negative(given(3)),
        "ppoll" => given(2) != 0,
        "select" | "pselect6" => given(4) != 0,
        _ => false,
    }
}

/// System calls in which a process may sleep.
fn name_of(number: i64) -> Option<&'static str> {
    macro_rules! names {
        ($($call:ident $name:literal,)*) => {
            $(if number == libc::$call as i64 { return Some($name); })*
        };
    }
    names! {
        SYS_futex "futex",
        SYS_ppoll "ppoll",
        SYS_pselect6 "pselect6",
        SYS_epoll_pwait "epoll_pwait",
        SYS_nanosleep "nanosleep",
        SYS_restart_syscall "restart_syscall",
        SYS_clock_nanosleep "clock_nanosleep",
        SYS_read "read",
        SYS_pread64 "pread64",
        SYS_readv "readv",
        SYS_preadv "preadv",
        SYS_write "write",
        SYS_pwrite64 "pwrite64",
        SYS_writev "writev",
        SYS_recvfrom "recvfrom",
        SYS_recvmsg "recvmsg",
        SYS_sendto "sendto",
        SYS_sendmsg "sendmsg",
        SYS_accept "accept",
        SYS_accept4 "accept4",
        SYS_connect "connect",
        SYS_wait4 "wait4",
        SYS_waitid "waitid",
        SYS_rt_sigsuspend "rt_sigsuspend",
        SYS_rt_sigtimedwait "rt_sigtimedwait",
        SYS_sched_yield "sched_yield",
        SYS_fsync "fsync",
        SYS_fdatasync "fdatasync",
        SYS_flock "flock",
        SYS_fcntl "fcntl",
        SYS_openat "openat",
        SYS_close "close",
        SYS_ioctl "ioctl",
        SYS_semtimedop "semtimedop",
        SYS_semop "semop",
        SYS_msgrcv "msgrcv",
        SYS_msgsnd "msgsnd",
        SYS_io_getevents "io_getevents",
        SYS_munmap "munmap",
        SYS_mmap "mmap",
        SYS_process_vm_readv "process_vm_readv",
        SYS_process_vm_writev "process_vm_writev",
        SYS_exit_group "exit_group",
    }
    #[cfg(target_arch = "x86_64")]
    names! {
        SYS_poll "poll",
        SYS_select "select",
        SYS_pause "pause",
        SYS_epoll_wait "epoll_wait",
        SYS_open "open",
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = "7 (a) R (b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 5 0 0";
        assert_eq!(parse_stat(text), Some(Stat { state: 'S', ticks: 42, begin: 5 }));
        assert_eq!(parse_stat("7 (cut"), None);
    }

    #[test]
    fn what_was_given_a_time_ends_by_itself() {
        let ends = |name, text| ends_by_itself(name, &parse_call(text).unwrap().1);
        assert!(ends("poll", "7 0x0 0x0 0x5dc 0x0 0x0 0x0 0x7ffd 0x7f"));
        assert!(!ends("poll", "7 0x0 0x0 0xffffffff 0x0 0x0 0x0 0x7ffd 0x7f"));
        assert!(ends("select", "23 0x5 0x7f 0x0 0x0 0x7ffd 0x0 0x7ffd 0x7f"));
        assert!(!ends("select", "23 0x5 0x7f 0x0 0x0 0x0 0x0 0x7ffd 0x7f"));
        assert!(ends("restart_syscall", "219 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f"));
        assert!(!ends("futex", "202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f"));
        assert_eq!(parse_call("running"), None);
        assert_eq!(parse_call("-1 0x7ffd 0x7f"), None);
    }

    #[test]
    fn a_sleeping_thread_says_where() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: asks for a number.
            tell.send(unsafe { libc::gettid() }).unwrap();
            let _ = receive.recv();
        });
        let (pid, tid) = (i64::from(std::process::id()), i64::from(told.recv().unwrap()));
        let asleep = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            state_of(pid, tid).filter(|state| state.state == 'S' && !state.sleeps_in.is_empty())
        });
        assert!(asleep.is_some_and(|state| state.sleeps_in.contains("futex") && state.sleeps > 0));
        let sleeps = |it: &SystemState| it.sleeps_in.contains("futex");
        assert!(others(pid, &[]).iter().any(sleeps));
        drop(send);
        sleeper.join().unwrap();
        assert_eq!(state_of(pid, tid), None);
    }
}
