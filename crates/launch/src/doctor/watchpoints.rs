//! Whether a program can watch words of its own memory (perf_event_open(2), PERF_TYPE_BREAKPOINT): one is watched, and written to.

use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Finding;

const NAME: &str = "watchpoints";
/// No processor has more a thread.
const MOST: usize = 16;
/// What a program does without them.
const ONLY: &str = "only lapscope reach uses them";

/// `perf_event_attr` up to `bp_len`, as the kernel has had it since 2.6.33 (PERF_ATTR_SIZE_VER1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    address: u64,
    bytes: u64,
}

const PERF_TYPE_BREAKPOINT: u32 = 5;
const HW_BREAKPOINT_W: u32 = 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// What becomes of one watched word.
enum WatchpointTrial {
    /// So many words can be watched at once.
    Works(usize),
    Refused(Error),
    /// It was set, and a write was not seen.
    Blind,
}

pub fn look(topic: &'static str) -> Finding {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let level = paranoid.and_then(|text| text.trim().parse().ok());
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    finding(topic, try_one(), level, is_root)
}

fn finding(
    topic: &'static str,
    trial: WatchpointTrial,
    paranoid: Option<i64>,
    is_root: bool,
) -> Finding {
    let error = match trial {
        WatchpointTrial::Works(words) => {
            return Finding::ok(topic, NAME, format!("{words} words a thread can be watched"));
        }
        WatchpointTrial::Blind => {
            let says = "one was set, and a write to its word was not seen: this virtual machine does not pass them on";
            return Finding::note(topic, NAME, says, "run it on another machine").follows(ONLY);
        }
        WatchpointTrial::Refused(error) => error,
    };
    let (says, way_out) = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match paranoid {
            Some(level) if level > 2 && !is_root => (
                format!("not permitted (perf_event_paranoid {level})"),
                "sysctl kernel.perf_event_paranoid=2",
            ),
            _ => (
                "not permitted, as in containers whose seccomp filter forbids perf_event_open".to_owned(),
                "a container may be started with the capability PERFMON (docker run --cap-add PERFMON) or a filter that \
                 permits perf_event_open",
            ),
        },
        Some(libc::ENOSPC | libc::EBUSY) => (
            "none is free: a debugger or another tool holds them".to_owned(),
            "end that, and look again",
        ),
        Some(libc::ENOSYS | libc::ENODEV | libc::EOPNOTSUPP | libc::ENOENT | libc::EINVAL) => (
            "this kernel or processor has none for programs, or a container hides them".to_owned(),
            "run it on another machine, or outside of the container",
        ),
        _ => (format!("cannot be had ({error})"), "run it on another machine"),
    };
    Finding::note(topic, NAME, says, way_out).follows(ONLY)
}

fn try_one() -> WatchpointTrial {
    let mut word = Box::new(0_u64);
    let first = match watch(&word) {
        Ok(event) => event,
        Err(error) => return WatchpointTrial::Refused(error),
    };
    // SAFETY: a word of our own; what is written to it is nobody's concern, but has to be written.
    unsafe { std::ptr::write_volatile(&mut *word, 1) };
    match hits(&first) {
        Ok(1..) => {}
        Ok(0) => return WatchpointTrial::Blind,
        Err(error) => return WatchpointTrial::Refused(error),
    }
    let others = [0_u64; MOST];
    let more: Vec<OwnedFd> = others.iter().map_while(|word| watch(word).ok()).collect();
    WatchpointTrial::Works(1 + more.len())
}

/// Watches a word for writes of this thread.
fn watch(word: &u64) -> Result<OwnedFd, Error> {
    let attributes = Attributes {
        kind: PERF_TYPE_BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        sample_period: 1,
        flags: EXCLUDE_KERNEL | EXCLUDE_HV,
        breakpoint_kind: HW_BREAKPOINT_W,
        address: std::ptr::from_ref(word) as u64,
        bytes: 8,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group) = (0_i32, -1_i32, -1_i32);
    // SAFETY: the kernel reads as many bytes of the attributes as they say they have.
    let event = unsafe {
        let attributes = std::ptr::from_ref(&attributes);
        let flags = PERF_FLAG_FD_CLOEXEC;
        libc::syscall(libc::SYS_perf_event_open, attributes, this_thread, any_cpu, no_group, flags)
    };
    match i32::try_from(event) {
        // SAFETY: the kernel has just opened it, for nobody else.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(Error::last_os_error()),
    }
}

/// Writes that were seen.
fn hits(event: &OwnedFd) -> Result<u64, Error> {
    let mut count = 0_u64;
    // SAFETY: the kernel writes at most eight bytes.
    let read = unsafe { libc::read(event.as_raw_fd(), std::ptr::from_mut(&mut count).cast(), 8) };
    match read {
        8 => Ok(count),
        0.. => Err(ErrorKind::UnexpectedEof.into()),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn each_obstacle_has_a_way_out() {
        let refused = |code, paranoid, is_root| {
            let trial = WatchpointTrial::Refused(Error::from_raw_os_error(code));
            let finding = finding("machine", trial, Some(paranoid), is_root);
            assert_eq!(finding.status, Status::Note);
            format!("{} -> {}", finding.says, finding.advice.unwrap())
        };
        let paranoid = refused(libc::EACCES, 4, false);
        assert!(paranoid.contains("(perf_event_paranoid 4)"), "{paranoid}");
        assert!(paranoid.ends_with("sysctl kernel.perf_event_paranoid=2"), "{paranoid}");
        for in_container in [refused(libc::EPERM, 2, false), refused(libc::EPERM, 4, true)] {
            assert!(in_container.contains("seccomp") && in_container.contains("PERFMON"));
        }
        assert!(refused(libc::ENOSPC, 2, false).contains("debugger"));
        assert!(refused(libc::ENODEV, 2, false).contains("another machine"));
        let blind = finding("machine", WatchpointTrial::Blind, Some(2), false);
        assert!(blind.says.contains("was not seen"), "{}", blind.says);
        let works = finding("machine", WatchpointTrial::Works(4), Some(2), false);
        assert_eq!((works.status, works.advice), (Status::Ok, None));
    }

    /// Whether they are here depends on the machine; what is said then does not.
    #[test]
    fn this_machine_is_looked_at() {
        match try_one() {
            WatchpointTrial::Works(words) => assert!((1..=1 + MOST).contains(&words)),
            WatchpointTrial::Refused(error) => assert!(error.raw_os_error().is_some(), "{error}"),
            WatchpointTrial::Blind => {}
        }
    }
}
