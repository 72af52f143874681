//! How processes of a node exchange messages: one copy, from memory to memory, or two through a segment that both map.

use std::ffi::CStr;

use super::host::Host;
use super::{filesystem, Finding};

/// Open MPI 5 has segments of 16 MiB a rank (btl_sm_segment_size), and there are more that want some.
const ENOUGH_MB: u64 = 512;

pub fn look(host: &Host, topic: &'static str) -> Vec<Finding> {
    let own = read_own_memory();
    vec![single_copy(host, topic, own), segments(topic, c"/dev/shm")]
}

fn single_copy(host: &Host, topic: &'static str, own: Result<(), i32>) -> Finding {
    let name = "shared memory";
    let others: Vec<&str> = [("/dev/xpmem", "XPMEM"), ("/dev/knem", "KNEM")]
        .iter()
        .filter(|(path, _)| host.is_open_to_us(path))
        .map(|(_, name)| *name)
        .collect();
    let others = if others.is_empty() { "no XPMEM, no KNEM".into() } else { others.join(", ") };
    let scope = host.ptrace_scope();
    let follows =
        "large messages within a node may take two copies instead of one, both by the processors";
    if let Err(code) = own {
        let says = format!(
            "single copies by CMA are not permitted (process_vm_readv: {}); {others}",
            std::io::Error::from_raw_os_error(code)
        );
        let advice = "a container may be started with a filter that permits process_vm_readv (docker run --cap-add SYS_PTRACE)";
        return Finding::note(topic, name, says, advice).follows(follows);
    }
    if scope > 0 {
        let says = format!("CMA is restricted (kernel.yama.ptrace_scope {scope}); {others}");
        let allowed = if scope == 1 {
            "processes that their MPI has opened to each other have it still"
        } else {
            "nobody but root has it"
        };
        let advice = "sysctl kernel.yama.ptrace_scope=0, by the administrators";
        return Finding::note(topic, name, says, advice).follows(format!("{follows}; {allowed}"));
    }
    Finding::ok(topic, name, format!("single copies by CMA permitted; {others}"))
}

/// A filter of a container refuses the call whatever is read.
fn read_own_memory() -> Result<(), i32> {
    let from = 1_u64;
    let mut to = 0_u64;
    let part = |word: *mut u64| libc::iovec { iov_base: word.cast(), iov_len: 8 };
    let (local, remote) = (part(&mut to), part(std::ptr::from_ref(&from).cast_mut()));
    // SAFETY: one word of ours is read into another.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    match read {
        8 => Ok(()),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
    }
}

fn segments(topic: &'static str, directory: &CStr) -> Finding {
    segment_room(topic, filesystem::room(directory).map(|room| room.free_mb))
}

fn segment_room(topic: &'static str, free_mb: Option<u64>) -> Finding {
    let name = "/dev/shm";
    let advice = "a container may be started with more (docker run --shm-size=2g, --ipc=host); elsewhere: ls -la /dev/shm, and remove \
                  what ended jobs have left";
    let follows = "segments of shared memory lie there: ranks may die of SIGBUS, or send within the node by TCP";
    match free_mb {
        None => Finding::warn(topic, name, "is not there", advice).follows(follows),
        Some(free) if free < ENOUGH_MB => {
            Finding::warn(topic, name, format!("{free} MB free"), advice).follows(follows)
        }
        Some(free) => Finding::ok(topic, name, format!("{free} MB free")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::tree;
    use crate::doctor::Status;

    #[test]
    fn what_forbids_single_copies() {
        let scope =
            |text: &str| tree(&[("proc/sys/kernel/yama/ptrace_scope", text), ("dev/knem", "")]);
        let free = scope("0\n");
        let here = single_copy(&Host::made(free.path(), &[]), "t", Ok(()));
        assert_eq!(
            (here.status, here.says.as_str()),
            (Status::Ok, "single copies by CMA permitted; KNEM")
        );
        let yama = scope("1\n");
        let restricted = single_copy(&Host::made(yama.path(), &[]), "t", Ok(()));
        assert!(restricted.says.contains("ptrace_scope 1") && restricted.status == Status::Note);
        let filtered = single_copy(&Host::made(free.path(), &[]), "t", Err(libc::EPERM));
        assert!(
            filtered.says.contains("process_vm_readv")
                && filtered.advice.unwrap().contains("SYS_PTRACE")
        );
        let bare = tree(&[]);
        let none = single_copy(&Host::made(bare.path(), &[]), "t", Ok(()));
        assert!(none.says.ends_with("no XPMEM, no KNEM"));
    }

    #[test]
    fn room_for_segments() {
        assert_eq!(segment_room("t", Some(64)).status, Status::Warn); // Docker's default
        assert_eq!(segment_room("t", None).status, Status::Warn);
        assert_eq!(segment_room("t", Some(8192)).status, Status::Ok);
        assert_eq!(segments("t", c"/no/such/place").says, "is not there");
    }
}
