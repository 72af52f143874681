//! What a process has mapped: proc_pid_maps(5), and what stands there.

use std::io;
use std::ops::Range;

/// A line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub addresses: Range<u64>,
    pub is_code: bool,
    pub is_writable: bool,
    pub offset: u64,
    /// The file's number in its file system.
    pub inode: u64,
    /// Of a file, or a name in brackets; empty: of nothing.
    pub path: String,
    /// There is no such file any more, or another one.
    pub is_deleted: bool,
}

impl Mapping {
    pub fn parse_all(text: &str) -> impl Iterator<Item = Mapping> + '_ {
        text.lines().filter_map(Mapping::parse)
    }

    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.splitn(6, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let addresses = hexadecimal(begin)?..hexadecimal(end)?;
        let rights = words.next()?;
        let (is_code, is_writable) = (rights.contains('x'), rights.contains('w'));
        let offset = hexadecimal(words.next()?)?;
        let inode = words.nth(1)?.parse().ok()?;
        let path = words.next().unwrap_or_default().trim_start();
        let left = path.strip_suffix(" (deleted)");
        let (path, is_deleted) = (left.unwrap_or(path).to_owned(), left.is_some());
        Some(Mapping { addresses, is_code, is_writable, offset, inode, path, is_deleted })
    }

    /// Whether both are of one file.
    pub fn is_same_file(&self, other: &Mapping) -> bool {
        (&self.path, self.inode) == (&other.path, other.inode)
    }
}

/// Reads memory of a process; what it has not got shortens it.
///
/// # Errors
/// Nothing of it can be read.
pub fn read_memory(pid: i64, address: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut memory = vec![0u8; bytes];
    let local = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes };
    // SAFETY: `local` is memory of ours of that length.
    let read = unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    memory.truncate(read as usize);
    Ok(memory)
}

/// A word of it.
pub fn read_word(pid: i64, address: u64) -> Option<u64> {
    Some(u64::from_ne_bytes(read_memory(pid, address, 8).ok()?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_blanks() {
        let text = "7f00-7f10 r-xp 00002000 fe:00 12                     /a b/c\n7ffd-7fff rw-p 00000000 00:00 0 [stack]\n8-9 rw-p 0 0:0 0\n\
                    a-b r-xp 0 fe:00 13 /a b/d (deleted)\n";
        let found: Vec<Mapping> = Mapping::parse_all(text).collect();
        assert_eq!(found[0].path, "/a b/c");
        assert_eq!(
            (found[0].addresses.clone(), found[0].offset, found[0].is_code),
            (0x7f00..0x7f10, 0x2000, true)
        );
        assert_eq!((found[1].path.as_str(), found[2].path.as_str()), ("[stack]", ""));
        assert_eq!(
            (found[3].path.as_str(), found[3].inode, found[3].is_deleted),
            ("/a b/d", 13, true)
        );
    }
}
