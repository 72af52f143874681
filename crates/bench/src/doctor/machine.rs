//! The machine: clock, counters, permissions, the disk here.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{watchpoints, Finding};
use crate::launch::line::find_executable;

const TOPIC: &str = "machine";

pub fn look() -> Vec<Finding> {
    vec![clock(), perf(), watchpoints::look(TOPIC), papi(), slow_link(), disk(Path::new("."))]
}

fn clock() -> Finding {
    let name = "clock";
    if cfg!(target_arch = "aarch64") {
        return Finding::ok(TOPIC, name, "generic timer, constant rate");
    }
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    if has("constant_tsc") && has("nonstop_tsc") {
        Finding::ok(TOPIC, name, "invariant time-stamp counter")
    } else {
        Finding::warn(
            TOPIC,
            name,
            "no invariant time-stamp counter: CLOCK_MONOTONIC is used",
            "nothing to do; each recorded call costs some 30 ns more",
        )
    }
}

fn perf() -> Finding {
    let name = "perf events";
    let Ok(text) = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") else {
        return Finding::warn(
            TOPIC,
            name,
            "this kernel has none",
            "only injection by timer would use them; it then takes a timer of the thread's CPU time",
        );
    };
    let level: i64 = text.trim().parse().unwrap_or(4);
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if level <= 2 || is_root {
        return Finding::ok(TOPIC, name, format!("permitted (perf_event_paranoid {level})"));
    }
    Finding::warn(
        TOPIC,
        name,
        format!("not permitted (perf_event_paranoid {level})"),
        "only injection by timer and hardware counters would use them: sysctl kernel.perf_event_paranoid=2",
    )
}

fn papi() -> Finding {
    let name = "PAPI";
    // the names that counters.c looks for
    for library in [
        c"libpapi.so.7.2",
        c"libpapi.so.7.1",
        c"libpapi.so.7.0",
        c"libpapi.so.7",
        c"libpapi.so.6.0",
        c"libpapi.so.6",
        c"libpapi.so.5.7",
        c"libpapi.so",
    ] {
        // SAFETY: a name with an end; PAPI does nothing when it is loaded, and is unloaded at once.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            // SAFETY: from dlopen.
            unsafe { libc::dlclose(handle) };
            return Finding::ok(TOPIC, name, library.to_string_lossy());
        }
    }
    Finding::warn(TOPIC, name, "not found", "only LAPSCOPE_COUNTERS needs it (Debian: libpapi-dev)")
}

/// What `make demo` needs for its slow link.
fn slow_link() -> Finding {
    let name = "network namespaces";
    let permitted = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let has_tc = ["tc", "/sbin/tc", "/usr/sbin/tc"]
        .iter()
        .any(|tc| find_executable(OsStr::new(tc)).is_some());
    if !permitted(&["-n", "true"]) && !permitted(&["-rn", "true"]) {
        return Finding::warn(
            TOPIC,
            name,
            "not permitted",
            "only `make demo` uses them; it then runs over shared memory",
        );
    }
    if !has_tc {
        return Finding::warn(
            TOPIC,
            name,
            "permitted, but there is no tc",
            "only `make demo` uses it (Debian: iproute2)",
        );
    }
    Finding::ok(TOPIC, name, "permitted, and tc is here: `make demo` can make a slow link")
}

/// Free space and kind of the file system that `directory` is on.
fn disk(directory: &Path) -> Finding {
    let name = "disk here";
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: plain data that the calls fill in; the path has an end.
    let (kind, room, writable) = unsafe {
        let mut kind: libc::statfs = std::mem::zeroed();
        let mut room: libc::statvfs = std::mem::zeroed();
        libc::statfs(path.as_ptr(), &mut kind);
        libc::statvfs(path.as_ptr(), &mut room);
        (kind, room, libc::access(path.as_ptr(), libc::W_OK) == 0)
    };
    #[allow(clippy::unnecessary_cast)] // its type differs between C libraries
    let kind = file_system(kind.f_type as i64);
    let free_mb = (room.f_bavail * room.f_frsize) >> 20;
    let says = format!("{free_mb} MB free, {}", kind.name);
    if !writable {
        return Finding::warn(
            TOPIC,
            name,
            "not writable",
            "name another place: lapscope run --dir",
        );
    }
    if kind.is_slow {
        return Finding::warn(
            TOPIC,
            name,
            says,
            "spools are better on a local disk: LAPSCOPE_SPOOL_DIR=/tmp, or lapscope run --spool-dir",
        );
    }
    if free_mb < 1024 {
        let advice = "a rank's spool may take up to LAPSCOPE_MAX_MB (50 MB): less with --max-mb";
        return Finding::warn(TOPIC, name, says, advice);
    }
    Finding::ok(TOPIC, name, says)
}

struct FileSystem {
    name: &'static str,
    /// Shared between nodes: mapped files are slow or unreliable on it.
    is_slow: bool,
}

/// By `f_type`: statfs(2), and the headers of those that are not in Linux.
fn file_system(magic: i64) -> FileSystem {
    let (name, is_slow) = match magic & 0xffff_ffff {
        0x6969 => ("NFS", true),
        0x0bd0_0bd0 => ("Lustre", true),
        0x4750_4653 => ("GPFS", true),
        0x1983_0326 => ("BeeGFS", true),
        0x00c3_6400 => ("Ceph", true),
        0x6573_5546 => ("FUSE", true),
        0xff53_4d42 | 0xfe53_4d42 => ("SMB", true),
        0xef53 => ("ext4", false),
        0x5846_5342 => ("XFS", false),
        0x9123_683e => ("Btrfs", false),
        0x0102_1994 => ("tmpfs", false),
        0x794c_7630 => ("overlay", false),
        0x2fc1_2fc1 => ("ZFS", false),
        _ => ("unknown file system", false),
    };
    FileSystem { name, is_slow }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_file_systems_are_slow() {
        assert!(file_system(0x0bd0_0bd0).is_slow);
        assert!(!file_system(0xef53).is_slow);
        // f_type is signed on some machines
        assert_eq!(file_system(i64::from(0xff53_4d42_u32 as i32)).name, "SMB");
    }
}
