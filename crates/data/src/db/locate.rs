//! Which files make up a run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::DbError;
use crate::text::shell;

/// The files of a run.
#[derive(Debug, Default)]
pub struct RunFiles {
    /// What the user named, or the run directory that was found.
    pub root: PathBuf,
    /// In the order of worlds and ranks; second lives (`rank-N-2.db`) behind their first. Those of nodes behind those of ranks.
    pub databases: Vec<PathBuf>,
    /// Spools not yet turned into databases, or what says where they are: of killed ranks, or of ranks still running.
    pub spools: Vec<PathBuf>,
    /// Why others are not among them: links out of the directory.
    pub left_out: Vec<DbError>,
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

/// The directory and its numbered siblings, as far as they exist, in the order of their numbers: a launch into a directory that
/// has a run writes beside it, `DIR-2`, `DIR-3` and so on.
pub fn with_siblings(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let name = directory.file_name().unwrap_or_default().as_bytes().to_vec();
    let parent = directory.parent().unwrap_or(directory).to_path_buf();
    let listed = if parent.as_os_str().is_empty() { Path::new(".") } else { &parent };
    let entries = std::fs::read_dir(listed).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry_name = entry.file_name();
            let rest = entry_name.as_bytes().strip_prefix(name.as_slice())?;
            let number = match rest.strip_prefix(b"-") {
                None => Some(1).filter(|_| rest.is_empty())?,
                Some(digits) => OsStr::from_bytes(digits).to_str()?.parse().ok()?,
            };
            Some((number, parent.join(entry_name)))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path)
}

/// The newest of the numbered siblings of a run, where it is newer than the run itself.
pub fn newer_sibling(run: &Path) -> Option<PathBuf> {
    let own = written(&list_files(run).ok()?)?;
    let others = with_siblings(run).filter(|other| other != run);
    let dated = others.filter_map(|other| Some((written(&list_files(&other).ok()?)?, other)));
    dated.max().filter(|(time, _)| *time > own).map(|(_, other)| other)
}

/// When its newest file of data was written. Not the directory: `lapscope recover` on an old run would make its directory new.
fn written(files: &RunFiles) -> Option<SystemTime> {
    let files = files.databases.iter().chain(&files.spools);
    files.filter_map(|file| std::fs::metadata(file).and_then(|it| it.modified()).ok()).max()
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
        newest = newest.max(written(&files).map(|time| (time, path)));
    }
    newest.map(|(_, path)| path).ok_or(DbError::NoRun)
}

/// Whether that is the name of a file in which ranks of a node say what `LAPSCOPE_INJECT=auto` decided.
pub fn is_page(name: &str) -> bool {
    name.starts_with("auto-") && name.ends_with(".jsonl")
}

/// Why the entry `path` of a directory of a run must not be opened: as a link it leads out of that directory, to what is its
/// reader's, and somebody else may have made the run. Links to nothing are not told apart: whether there is something is the
/// reader's, too. `None`: it may be.
pub fn link_out(path: &Path) -> Option<DbError> {
    let target = std::fs::read_link(path).ok()?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    let is_inside = directory
        .is_ok_and(|directory| path.canonicalize().is_ok_and(|end| end.starts_with(directory)));
    (!is_inside).then(|| DbError::LinkOut { path: path.into(), target })
}

/// What to do about such a link.
pub(super) fn instead(link: &Path) -> String {
    let itself = match link.extension().is_some_and(|extension| extension == "db") {
        true => format!(", or name it itself: lapscope report {}", shell::quote(link)),
        false => String::new(),
    };
    format!("Put a copy of the file in its place{itself}")
}

/// The databases and spools of a run directory, or the one database that `root` is.
///
/// # Errors
/// [`DbError::Empty`] for a directory without any, [`DbError::OnlyPages`] where it has pages instead, [`DbError::LinkOut`] where it has
/// only such links, [`DbError::Io`] when it cannot be listed.
pub fn list_files(root: &Path) -> Result<RunFiles, DbError> {
    if !root.is_dir() {
        return Ok(RunFiles {
            root: root.into(),
            databases: vec![root.into()],
            spools: Vec::new(),
            left_out: Vec::new(),
        });
    }
    let io = |source| DbError::Io { path: root.into(), source };
    let (mut databases, mut spools, mut has_pages) = (Vec::new(), Vec::new(), false);
    let mut left_out = Vec::new();
    let mut is_own = |path: &Path| {
        let link = link_out(path);
        let is_own = link.is_none();
        left_out.extend(link);
        is_own
    };
    for entry in std::fs::read_dir(root).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let (path, name) = (root.join(&name), name.to_string_lossy());
        match parse_name(&name) {
            Some((key, "db")) if is_own(&path) => databases.push((key, path)),
            Some((key, "spool" | "spool-at")) if is_own(&path) => spools.push((key, path)),
            _ => has_pages |= is_page(&name) && is_own(&path),
        }
    }
    left_out.sort_by(|a, b| a.path().cmp(&b.path()));
    if databases.is_empty() && spools.is_empty() && has_pages {
        return Err(DbError::OnlyPages(root.into()));
    }
    if databases.is_empty() && spools.is_empty() {
        return Err(left_out.into_iter().next().unwrap_or(DbError::Empty(root.into())));
    }
    let in_order = |mut files: Vec<(FileKey, PathBuf)>| {
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    };
    let (databases, spools) = (in_order(databases), in_order(spools));
    Ok(RunFiles { root: root.into(), databases, spools, left_out })
}

/// Whose a file is. Files are listed in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKey {
    Rank {
        world: u64,
        rank: u64,
        life: u64,
    },
    /// The file of all ranks of a node; `number`: further ones of the same host. Its name without the number at its end, and
    /// that.
    Node {
        cluster: String,
        node: u64,
        host: String,
        number: u64,
    },
}

/// Whose a file is, and its extension: `rank-N.db`, `rank-N-LIFE.db`, of other worlds than the first `world-W-rank-N.db`, of all
/// ranks of a node `node-HOST.db` or `node-HOST+NUMBER.db`. `None` for files that are neither a rank's nor a node's.
pub fn parse_name(name: &str) -> Option<(FileKey, &str)> {
    if let Some(rest) = name.strip_prefix("node-") {
        return parse_node(rest);
    }
    let (stem, extension) = name.split_once('.')?;
    let (world, stem) = match stem.strip_prefix("world-") {
        Some(rest) => rest.split_once('-')?,
        None => ("1", stem),
    };
    let stem = stem.strip_prefix("rank-")?;
    let (rank, life) = stem.split_once('-').unwrap_or((stem, "1"));
    let (world, rank, life) = (world.parse().ok()?, rank.parse().ok()?, life.parse().ok()?);
    Some((FileKey::Rank { world, rank, life }, extension))
}

/// Names of hosts may have dots in them.
fn parse_node(rest: &str) -> Option<(FileKey, &str)> {
    let (stem, extension) = rest.rsplit_once('.')?;
    let (host, number) = stem.split_once('+').unwrap_or((stem, "1"));
    let number = number.parse().ok().filter(|_| !host.is_empty())?;
    let first = host.split('.').next().unwrap_or(host);
    let cluster = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let node = first[cluster.len()..].parse().unwrap_or(0);
    let (cluster, host) = (cluster.to_owned(), host.to_owned());
    Some((FileKey::Node { cluster, node, host, number }, extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rank_files() {
        let of =
            |world, rank, life, extension| Some((FileKey::Rank { world, rank, life }, extension));
        assert_eq!(parse_name("rank-12.db"), of(1, 12, 1, "db"));
        assert_eq!(parse_name("rank-0-2.db"), of(1, 0, 2, "db"));
        assert_eq!(parse_name("world-3-rank-0.spool"), of(3, 0, 1, "spool"));
        assert_eq!(parse_name("world-3-rank-1-2.spool-at"), of(3, 1, 2, "spool-at"));
        assert_eq!(parse_name("rank-x.db"), None);
        assert_eq!(parse_name("job"), None);
    }

    #[test]
    fn names_of_node_files() {
        let parse = |name| match parse_name(name) {
            Some((FileKey::Node { node, host, number, .. }, extension)) => {
                Some((node, host, number, extension))
            }
            _ => None,
        };
        assert_eq!(parse("node-c12.db"), Some((12, "c12".to_owned(), 1, "db")));
        let long = "c-3.cluster.local".to_owned();
        assert_eq!(parse("node-c-3.cluster.local+2.spool-at"), Some((3, long, 2, "spool-at")));
        assert_eq!(parse("node-vm.db"), Some((0, "vm".to_owned(), 1, "db")));
        assert_eq!(parse("node-.db").or(parse("node-a+b.db")), None);
    }

    #[test]
    fn files_are_listed_world_by_world() {
        let directory = tempfile::tempdir().unwrap();
        let ranks = ["rank-2.db", "rank-10.db", "rank-10-2.db", "world-2-rank-0.db"];
        let sorted = [&ranks[..], &["node-c2.db", "node-c10.db", "node-c10+2.db"]].concat();
        for name in sorted.iter().rev().chain(&["rank-2.db-journal", "job"]) {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let files = list_files(directory.path()).unwrap().databases;
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(names, sorted);
    }
}
