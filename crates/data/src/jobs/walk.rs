//! Finds the files of records below folders. A folder may be everybody's to write to: below those that were named no link is
//! followed, and of what is opened it is asked only then what it is.

use std::fs::{DirEntry, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::job::{is_record_name, MOST_JOB_BYTES};

/// By what a file is known to be the one that was read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    pub bytes: i64,
    pub modified_ns: i64,
    pub inode: i64,
}

impl FileState {
    pub fn of(facts: &Metadata) -> FileState {
        let modified_ns =
            facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec());
        FileState { bytes: facts.len() as i64, modified_ns, inode: facts.ino() as i64 }
    }
}

/// Tells `found` each file that is called a record, with its state, and `failed` what cannot be read.
pub(super) fn walk(
    folder: &Path,
    found: &mut impl FnMut(PathBuf, FileState),
    failed: &mut impl FnMut(&Path, &io::Error),
) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => {
                failed(&folder, &error);
                continue;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| look_at(&entry)) {
                Ok(Below::Folder(below)) => folders.push(below),
                Ok(Below::Record(path, state)) => found(path, state),
                Ok(Below::Other) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {} // replaced meanwhile, or deleted
                Err(error) => failed(&folder, &error),
            }
        }
    }
}

enum Below {
    Folder(PathBuf),
    Record(PathBuf, FileState),
    Other,
}

fn look_at(entry: &DirEntry) -> io::Result<Below> {
    let kind = entry.file_type()?;
    let name = entry.file_name();
    if kind.is_dir() {
        return Ok(Below::Folder(entry.path()));
    }
    if !kind.is_file() || !is_record_name(&name.to_string_lossy()) {
        return Ok(Below::Other);
    }
    Ok(Below::Record(entry.path(), FileState::of(&entry.metadata()?)))
}

/// The bytes of a record, at most one more than it may have, and whose file they are.
pub(super) fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_JOB_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes, facts))
}
