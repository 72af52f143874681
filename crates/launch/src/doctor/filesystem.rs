//! Kinds of file systems, and what room they have. Kinds are told by `f_type`: statfs(2), and the headers of those that are not in Linux.

use std::ffi::CStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    pub name: &'static str,
    pub kind: FileSystemKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystemKind {
    /// On storage of this node.
    Local,
    /// Shared between nodes: mapped files are slow or unreliable on it.
    Shared,
    /// In memory: what is written counts as memory used.
    Memory,
}

pub fn of_magic(magic: i64) -> FileSystem {
    use FileSystemKind::{Local, Memory, Shared};
    let (name, kind) = match magic & 0xffff_ffff {
        0x6969 => ("NFS", Shared),
        0x0bd0_0bd0 => ("Lustre", Shared),
        0x4750_4653 => ("GPFS", Shared),
        0x1983_0326 => ("BeeGFS", Shared),
        0x00c3_6400 => ("Ceph", Shared),
        0xaad7_aaea => ("PanFS", Shared),
        0x5346_414f | 0x6b41_4653 => ("AFS", Shared),
        0x0116_1970 => ("GFS2", Shared),
        0x7461_636f => ("OCFS2", Shared),
        0x0102_1997 => ("9P", Shared),
        0x6573_5546 => ("FUSE", Shared),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => ("SMB", Shared),
        0xef53 => ("ext4", Local),
        0x5846_5342 => ("XFS", Local),
        0x9123_683e => ("Btrfs", Local),
        0xf2f5_2010 => ("F2FS", Local),
        0x794c_7630 => ("overlay", Local),
        0x2fc1_2fc1 => ("ZFS", Local),
        0x7371_7368 => ("squashfs", Local),
        0x0102_1994 => ("tmpfs", Memory),
        0x8584_58f6 => ("ramfs", Memory),
        _ => ("unknown file system", Local),
    };
    FileSystem { name, kind }
}

/// What a file system has left for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    pub free_mb: u64,
    /// `None`: it does not count them.
    pub free_files: Option<u64>,
}

/// `None`: there is no such directory.
pub fn room(directory: &CStr) -> Option<FreeSpace> {
    // SAFETY: plain data that the call fills in; a path with an end.
    let said = unsafe {
        let mut said: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(directory.as_ptr(), &mut said) == 0).then_some(said)
    }?;
    let free_files = (said.f_files > 0).then_some(said.f_favail);
    Some(FreeSpace { free_mb: (said.f_bavail * said.f_frsize) >> 20, free_files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_number() {
        assert_eq!(
            of_magic(0x0bd0_0bd0),
            FileSystem { name: "Lustre", kind: FileSystemKind::Shared }
        );
        assert_eq!(of_magic(0xef53).kind, FileSystemKind::Local);
        assert_eq!(of_magic(0x0102_1994).kind, FileSystemKind::Memory);
        // f_type is signed on some machines
        assert_eq!(of_magic(i64::from(0xff53_4d42_u32 as i32)).name, "SMB");
        assert_eq!(of_magic(1).name, "unknown file system");
    }
}
