//! Copies of runs of more files than SQLite can attach, kept for later queries: under TMPDIR, in a directory of this user's
//! alone.

use std::fs::{self, DirBuilder, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::merge;
use crate::db::{Database, DbError, USER_VERSION};
use crate::schema::SCHEMA_SQL;

/// Copies that nobody asked for so long go when the next one is made.
const UNUSED: Duration = Duration::from_secs(24 * 3600);

/// Files in one.
pub(super) struct Copy {
    pub path: PathBuf,
    /// Why some files are not in it.
    pub left_out: Vec<DbError>,
    /// Where it is, when it is not kept: goes when this goes.
    pub goes_with: Option<TempDir>,
}

/// The copy of `files`, made when there is none of them as they are now. It is kept when all of them are in it, so that what
/// was left out is said with each query.
///
/// # Errors
/// As [`merge`].
pub(super) fn copy(
    files: &[PathBuf],
    copying: &dyn Fn(&Path),
    progress: &dyn Fn(u64),
) -> anyhow::Result<Copy> {
    let shelf = shelf();
    let kept = shelf.as_ref().and_then(|shelf| Some(shelf.join(name(files)?)));
    if let Some(path) = kept.as_ref().filter(|path| is_usable(path)) {
        return Ok(Copy { path: path.clone(), left_out: Vec::new(), goes_with: None });
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix("lapscope-merged-");
    let directory = match &shelf {
        Some(shelf) => builder.tempdir_in(shelf)?,
        None => builder.tempdir()?,
    };
    let path = directory.path().join("merged.db");
    copying(kept.as_deref().unwrap_or(&path));
    let left_out = merge(files, &path, progress)?;
    match kept {
        Some(kept) if left_out.is_empty() && fs::rename(&path, &kept).is_ok() => {
            clear(kept.parent().unwrap_or(&kept), &kept);
            Ok(Copy { path: kept, left_out, goes_with: None })
        }
        _ => Ok(Copy { path, left_out, goes_with: Some(directory) }),
    }
}

/// Where copies are kept; `None` where there cannot be such a directory. Others may have made one of that name.
fn shelf() -> Option<PathBuf> {
    // SAFETY: asks for a number.
    let user = unsafe { libc::geteuid() };
    let shelf = std::env::temp_dir().join(format!("merged-by-lapscope-{user}"));
    let made = DirBuilder::new().mode(0o700).create(&shelf);
    if made.is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
        return None;
    }
    let is_own =
        |facts: Metadata| facts.is_dir() && facts.uid() == user && facts.mode() & 0o077 == 0;
    fs::symlink_metadata(&shelf).is_ok_and(is_own).then_some(shelf)
}

/// The name for files as they are now: one that is written to, or replaced, makes another name.
fn name(files: &[PathBuf]) -> Option<String> {
    let mut hasher = DefaultHasher::new();
    (USER_VERSION, env!("CARGO_PKG_VERSION"), SCHEMA_SQL).hash(&mut hasher);
    for path in files {
        let facts = fs::metadata(path).ok()?;
        let is = [facts.dev(), facts.ino(), facts.size()];
        let was = [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()];
        (std::path::absolute(path).ok()?, is, was).hash(&mut hasher);
    }
    Some(format!("{:016x}.db", hasher.finish()))
}

fn is_usable(path: &Path) -> bool {
    let is_whole = Database::open(path).is_ok();
    if is_whole {
        let now = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
        drop(now); // then it goes sooner
    }
    is_whole
}

/// Removes what nobody asked for in a day, and what was left by those who were ended while they copied.
fn clear(shelf: &Path, but: &Path) {
    let is_old = |facts: Metadata| {
        facts.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > UNUSED))
    };
    for entry in fs::read_dir(shelf).into_iter().flatten().flatten() {
        let path = entry.path();
        if path == but || !entry.metadata().is_ok_and(is_old) {
            continue;
        }
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
}
