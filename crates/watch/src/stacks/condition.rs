//! Why a process has no stack that can be read.

use std::fs;
use std::io::Read;

use lapscope_data::store::stat_fields;

pub const ENDED: &str = "it has ended";
/// Of a process of this user, or where root asks.
pub const FORBIDDEN: &str = "its memory may not be looked at: it has rights that lapscope has not, as setuid programs and what is outside of \
    a container, or the container has no SYS_PTRACE (docker run --cap-add SYS_PTRACE)";

/// `None`: nothing is known against it.
pub fn of(pid: i64) -> Option<&'static str> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some(fields) = stat_fields(&stat) else { return Some(ENDED) };
    if is_zombie(&fields) {
        return Some("it has ended, and its parent has not asked how (a zombie)");
    }
    if is_of_the_kernel(pid) {
        return Some("it is a thread of the kernel, which runs no program");
    }
    is_of_32_bits(pid).then_some("stacks of 32-bit processes cannot be read")
}

/// All of its threads have ended: proc_pid_stat(5), state and num_threads.
fn is_zombie(fields: &[&str]) -> bool {
    let threads = fields.get(17).and_then(|number| number.parse().ok()).unwrap_or(0);
    matches!(fields.first(), Some(&"Z" | &"X")) && threads <= 1
}

/// Whether a thread runs nothing but the kernel, as also those do which io_uring(7) adds to a process: PF_KTHREAD, PF_USER_WORKER and
/// PF_IO_WORKER of include/linux/sched.h.
pub fn is_of_the_kernel(tid: i64) -> bool {
    const KERNEL: u64 = 0x0020_0000 | 0x4000 | 0x10;
    let stat = fs::read_to_string(format!("/proc/{tid}/task/{tid}/stat")).unwrap_or_default();
    let fields = stat_fields(&stat).unwrap_or_default();
    let flags = fields.get(6).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    flags & KERNEL != 0
}

/// By its executable, elf(5).
fn is_of_32_bits(pid: i64) -> bool {
    const CLASS: usize = 4;
    let mut begin = [0; CLASS + 1];
    let executable = fs::File::open(format!("/proc/{pid}/exe"));
    executable.and_then(|mut it| it.read_exact(&mut begin)).is_ok() && begin[CLASS] == 1
}
