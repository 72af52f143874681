//! Which files make up a run.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::DbError;

/// The files of a run.
#[derive(Debug)]
pub struct RunFiles {
    /// What the user named, or the run directory that was found.
    pub root: PathBuf,
    /// Rank order for `rank-N.db`; second lives (`rank-N-2.db`) behind their first.
    pub databases: Vec<PathBuf>,
    /// Spools not yet turned into databases: of killed ranks, or of ranks still running.
    pub spools: Vec<PathBuf>,
}

/// The run that `named` means: itself, or the newest `lapscope-*` directory here that holds data.
///
/// # Errors
/// [`DbError::NotFound`], or [`DbError::NoRun`] when nothing was named and nothing is here.
pub fn find_run(named: Option<&Path>) -> Result<PathBuf, DbError> {
    match named {
        Some(path) if path.exists() => Ok(path.into()),
        Some(path) => Err(DbError::NotFound(path.into())),
        None => newest_run(Path::new(".")),
    }
}

fn newest_run(directory: &Path) -> Result<PathBuf, DbError> {
    let io = |source| DbError::Io { path: directory.into(), source };
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in std::fs::read_dir(directory).map_err(io)?.flatten() {
        let name = entry.file_name();
        let path = PathBuf::from(&name);
        if !name.to_string_lossy().starts_with("lapscope-") || !directory.join(&path).is_dir() {
            continue;
        }
        let Ok(files) = list_files(&directory.join(&path)) else { continue };
        // Data files, not the directory: `lapscope recover` on an old run would make its directory new.
        let written = files.databases.iter().chain(&files.spools).filter_map(|file| {
            std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
        });
        let candidate = written.max().map(|time| (time, path));
        newest = newest.max(candidate);
    }
    newest.map(|(_, path)| path).ok_or(DbError::NoRun)
}

/// The databases and spools of a run directory, or the one database that `root` is.
///
/// # Errors
/// [`DbError::Empty`] for a directory without any, [`DbError::Io`] when it cannot be listed.
pub fn list_files(root: &Path) -> Result<RunFiles, DbError> {
    if !root.is_dir() {
        return Ok(RunFiles {
            root: root.into(),
            databases: vec![root.into()],
            spools: Vec::new(),
        });
    }
    let io = |source| DbError::Io { path: root.into(), source };
    let (mut databases, mut spools) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(root).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let Some((key, extension)) = parse_name(&name.to_string_lossy()) else { continue };
        match extension {
            Extension::Database => databases.push((key, root.join(&name))),
            Extension::Spool => spools.push((key, root.join(&name))),
        }
    }
    if databases.is_empty() && spools.is_empty() {
        return Err(DbError::Empty(root.into()));
    }
    let in_order = |mut files: Vec<((u64, u64), PathBuf)>| {
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    };
    Ok(RunFiles { root: root.into(), databases: in_order(databases), spools: in_order(spools) })
}

#[derive(Debug, PartialEq)]
enum Extension {
    Database,
    Spool,
}

/// `rank-N.db`, `rank-N-LIFE.db` and the same with `.spool`: ((rank, life), which).
fn parse_name(name: &str) -> Option<((u64, u64), Extension)> {
    let (stem, extension) = name.strip_prefix("rank-")?.split_once('.')?;
    let extension = match extension {
        "db" => Extension::Database,
        "spool" => Extension::Spool,
        _ => return None,
    };
    let (rank, life) = stem.split_once('-').unwrap_or((stem, "1"));
    Some(((rank.parse().ok()?, life.parse().ok()?), extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rank_files() {
        assert_eq!(parse_name("rank-12.db"), Some(((12, 1), Extension::Database)));
        assert_eq!(parse_name("rank-0-2.db"), Some(((0, 2), Extension::Database)));
        assert_eq!(parse_name("rank-3.spool"), Some(((3, 1), Extension::Spool)));
        assert_eq!(parse_name("rank-3.db-journal"), None);
        assert_eq!(parse_name("rank-x.db"), None);
    }
}
