//! Opens what a run directory or a database names: regular files only, and never a wait. A FIFO without a writer would
//! hold a reader for ever, and devices answer without an end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::text::shell;

/// Opens a regular file for reading.
///
/// # Errors
/// Of open(2); [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Of a name one knows what it is when it is open: until then it may change. O_NONBLOCK is nothing to regular files.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// What is in a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open_regular`]; the file is longer.
pub fn read_short(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    open_regular(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("longer than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

/// As [`read_short`], of text.
///
/// # Errors
/// As [`read_short`]; it is not UTF-8.
pub fn read_short_text(path: &Path, most: u64) -> io::Result<String> {
    let text = String::from_utf8(read_short(path, most)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// An error of writing `path`, with the way out where one is known.
pub fn cannot_write(path: &Path, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match way_out(&error, path) {
        Some(way) => anyhow::anyhow!("cannot write {}: {way}", path.display()),
        None => error.context(format!("cannot write {}", path.display())),
    }
}

/// What stands in the way of writing `path`, and what to do about it; `None`: not known.
pub fn way_out(error: &anyhow::Error, path: &Path) -> Option<String> {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>())?.kind();
    let is = |code: i32| kind == io::Error::from_raw_os_error(code).kind();
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let way = match directory {
        _ if is(libc::ENOSPC) || is(libc::EDQUOT) => "make room, or name a place on another disk",
        _ if is(libc::EFBIG) => "files of that size are not allowed here: raise `ulimit -f`",
        _ if is(libc::EACCES) || is(libc::EROFS) => "name a place that you may write to",
        Some(directory) if is(libc::ENOENT) => {
            let directory = shell::quote(directory);
            return Some(format!("its directory is not there: mkdir -p {directory}"));
        }
        _ => return None,
    };
    Some(way.to_owned())
}

/// Lets writes beyond the limit on the size of files (`ulimit -f`) fail with EFBIG, where the kernel would end this process.
/// Programs that it starts do not inherit that.
pub fn outlive_file_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing; what was set before is set again where it ignores the signal.
    unsafe {
        let before = libc::signal(libc::SIGXFSZ, nothing as extern "C" fn(libc::c_int) as usize);
        if before == libc::SIG_IGN {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
    }
}

/// What is freed stays with this process: files are read one after the other, and each needs what the one before has left. glibc
/// would give it back to the kernel meanwhile, which fills it with zeros again.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes when glibc calls the kernel, no more.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 28);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 25);
    }
}

/// Gives back what [`keep_freed_memory`] kept, where what comes next takes its memory elsewhere.
pub fn give_back_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: as there.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of memory that this process may use: what the machine has, or what its control group (version 2) leaves of it, as batch
/// systems set it. 4 GiB where neither is known.
pub fn machine_memory() -> u64 {
    let of_machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    let of_machine = of_machine.map_or(4 << 30, |kib| kib << 10);
    let own_group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        let path = format!("/sys/fs/cgroup{}/memory.max", group.trim_end_matches('/'));
        std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    own_group.map_or(of_machine, |limit| limit.min(of_machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_fifos_nor_devices_nor_directories() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: the name ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [&*fifo, Path::new("/dev/zero"), directory.path()] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
        let file = directory.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_short_text(&file, 4).unwrap(), "text");
        assert!(read_short_text(&file, 3).is_err());
    }

    #[test]
    fn errors_of_writing_name_the_way_out() {
        let said = |path: &str, code: i32| {
            format!("{:#}", cannot_write(Path::new(path), io::Error::from_raw_os_error(code)))
        };
        let nowhere = said("/no dir/x", libc::ENOENT);
        assert_eq!(
            nowhere,
            "cannot write /no dir/x: its directory is not there: mkdir -p '/no dir'"
        );
        assert!(said("x", libc::EFBIG).contains("ulimit -f"));
        assert!(said("x", libc::ENOSPC).contains("make room"));
        assert!(said("x", libc::EROFS).contains("that you may write to"));
        let other = said("x", libc::EIO);
        assert!(other.starts_with("cannot write x: ") && other.contains("os error 5"), "{other}");
        // tempfile wraps what the system said
        let wrapped = tempfile::NamedTempFile::new_in("/no/such/place").unwrap_err();
        let wrapped = format!("{:#}", cannot_write(Path::new("/no/such/place/x"), wrapped));
        assert!(wrapped.ends_with("mkdir -p /no/such/place"), "{wrapped}");
    }
}
