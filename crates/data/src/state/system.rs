//! What the operating system says of the threads of a process of this host: proc_pid_stat(5), proc_pid_wchan(5),
//! proc_pid_syscall(5).

use std::fs;

use super::SystemState;
use crate::model::Nanos;
use crate::store::stat_fields;

/// `None`: the thread has ended, or nothing is told of it.
pub fn state_of(pid: i64, tid: i64) -> Option<SystemState> {
    let task = format!("/proc/{pid}/task/{tid}");
    let (state, ticks) = parse_stat(&fs::read_to_string(format!("{task}/stat")).ok()?)?;
    let sleeps_in = match state {
        'R' => String::new(),
        _ => sleeps_in(&task),
    };
    Some(SystemState { state, processor: Nanos(ticks.saturating_mul(nanos_a_tick())), sleeps_in })
}

/// What is told of the threads of a process but for those known.
pub fn others(pid: i64, known: &[i64]) -> Vec<SystemState> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    tids.filter(|tid| !known.contains(tid)).filter_map(|tid| state_of(pid, tid)).collect()
}

/// The state, and clock ticks on a processor.
fn parse_stat(text: &str) -> Option<(char, i64)> {
    let fields = stat_fields(text)?;
    let ticks = |at: usize| fields.get(at)?.parse::<i64>().ok();
    Some((fields.first()?.chars().next()?, ticks(11)?.saturating_add(ticks(12)?)))
}

fn nanos_a_tick() -> i64 {
    // SAFETY: asks for a number.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / ticks_a_second.max(1)
}

/// The system call, and where that may not be asked for, the kernel's function.
fn sleeps_in(task: &str) -> String {
    let call = fs::read_to_string(format!("{task}/syscall")).unwrap_or_default();
    let number = call.split_whitespace().next().and_then(|number| number.parse::<i64>().ok());
    if let Some(number) = number.filter(|&number| number >= 0) {
        return name_of(number).map_or_else(|| format!("system call {number}"), str::to_owned);
    }
    let place = fs::read_to_string(format!("{task}/wchan")).unwrap_or_default();
    match place.trim() {
        "0" => String::new(),
        place => place.to_owned(),
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
        assert_eq!(parse_stat(text), Some(('S', 42)));
        assert_eq!(parse_stat("7 (cut"), None);
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
        assert!(asleep.is_some_and(|state| state.sleeps_in.contains("futex")));
        let sleeps = |it: &SystemState| it.sleeps_in.contains("futex");
        assert!(others(pid, &[]).iter().any(sleeps));
        drop(send);
        sleeper.join().unwrap();
        assert_eq!(state_of(pid, tid), None);
    }
}
