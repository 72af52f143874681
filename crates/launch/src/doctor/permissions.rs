//! What the kernel permits: counters, timers, looking into other processes.

use super::host::Host;
use super::{watchpoints, Finding};

const TOPIC: &str = "permissions";

pub fn look(host: &Host) -> Vec<Finding> {
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    vec![perf(host, is_root), watchpoints::look(TOPIC), timer(try_timer()), tracing(host, is_root)]
}

fn perf(host: &Host, is_root: bool) -> Finding {
    let name = "perf events";
    let only = "only injection by timer and hardware counters would use them";
    let Some(level) = host.number("/proc/sys/kernel/perf_event_paranoid") else {
        let advice = "nothing to do; injection takes a timer of the thread's CPU time";
        return Finding::note(TOPIC, name, "this kernel has none", advice).follows(only);
    };
    if level <= 2 || is_root {
        return Finding::ok(TOPIC, name, format!("permitted (perf_event_paranoid {level})"));
    }
    let advice = "sysctl kernel.perf_event_paranoid=2, by the administrators";
    Finding::note(TOPIC, name, format!("not permitted (perf_event_paranoid {level})"), advice)
        .follows(only)
}

/// As injection by timer makes it (alarm.c).
fn try_timer() -> Result<(), i32> {
    let failed = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: a timer that signals nobody, and is deleted at once.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_NONE;
        let mut timer: libc::timer_t = std::mem::zeroed();
        if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) != 0 {
            return Err(failed());
        }
        libc::timer_delete(timer);
    }
    Ok(())
}

fn timer(tried: Result<(), i32>) -> Finding {
    let name = "timers";
    let Err(code) = tried else {
        return Finding::ok(TOPIC, name, "of a thread's CPU time permitted");
    };
    let reason = std::io::Error::from_raw_os_error(code);
    let advice = match code {
        libc::EAGAIN => "ulimit -i 4096",
        _ => "outside of this container, or with LAPSCOPE_INJECT=thread or calls",
    };
    Finding::warn(TOPIC, name, format!("timer_create: {reason}"), advice)
        .follows("injection by timer would use them, where perf events are not permitted")
}

/// Only for `lapscope hang`, which otherwise says less.
fn tracing(host: &Host, is_root: bool) -> Finding {
    let name = "tracing";
    let status = host.read("/proc/self/status").unwrap_or_default();
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let is_filtered = value("Seccomp:") == Some("2");
    let scope = host.ptrace_scope();
    let filter = if is_filtered { "; system calls are filtered (seccomp)" } else { "" };
    if scope == 0 || (is_root && scope < 3) {
        return Finding::ok(TOPIC, name, format!("own processes may be looked into{filter}"));
    }
    let says = format!("restricted (kernel.yama.ptrace_scope {scope}){filter}");
    Finding::note(TOPIC, name, says, "sysctl kernel.yama.ptrace_scope=0, by the administrators")
        .follows(
            "lapscope hang does not say in which system call a rank sleeps; all else of it works",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::tree;
    use crate::doctor::Status;

    #[test]
    fn what_is_forbidden_has_a_way_out() {
        let level = |text| tree(&[("proc/sys/kernel/perf_event_paranoid", text)]);
        let (strict, usual) = (level("4\n"), level("2\n"));
        assert_eq!(perf(&Host::made(strict.path(), &[]), false).status, Status::Note);
        assert_eq!(perf(&Host::made(strict.path(), &[]), true).status, Status::Ok);
        assert_eq!(perf(&Host::made(usual.path(), &[]), false).status, Status::Ok);
        let none = tree(&[]);
        assert!(perf(&Host::made(none.path(), &[]), true).says.contains("none"));
        assert!(timer(Err(libc::EAGAIN)).advice.unwrap().contains("ulimit -i"));
        assert!(timer(Err(libc::EPERM)).advice.unwrap().contains("LAPSCOPE_INJECT"));
        assert_eq!(timer(Ok(())).status, Status::Ok);
    }

    #[test]
    fn tracing_by_yama_and_filters() {
        let root = tree(&[
            ("proc/sys/kernel/yama/ptrace_scope", "1\n"),
            ("proc/self/status", "Name:\tx\nSeccomp:\t2\n"),
        ]);
        let host = Host::made(root.path(), &[]);
        let restricted = tracing(&host, false);
        assert_eq!(restricted.status, Status::Note);
        assert!(restricted.says.contains("ptrace_scope 1") && restricted.says.contains("seccomp"));
        assert_eq!(tracing(&host, true).status, Status::Ok);
    }
}
