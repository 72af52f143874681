//! Where the spools of a run are: in its directory, or where a `rank-N.spool-at` or `node-HOST.spool-at` in it points to.

use std::path::{Path, PathBuf};

use super::header::Header;
use super::Unseen;
use crate::db::{link_out, parse_name, DbError, FileKey};
use crate::recovery::{Claim, Pointer};
use crate::slurm;
use crate::store::host_name;
use crate::text::shell;

/// A spool that can be seen from here.
#[derive(Debug)]
pub struct SpoolFile {
    pub path: PathBuf,
    /// `rank-3`
    file: String,
    /// As the pointer says; empty where there is none.
    host: String,
    /// Identity of the job that the directory belongs to.
    job: Option<String>,
}

pub struct SpoolSearch {
    pub sources: Vec<SpoolFile>,
    pub unseen: Vec<Unseen>,
}

impl Unseen {
    /// A file that is left out.
    pub fn file(error: &DbError) -> Unseen {
        let file = error.path().map(stem).unwrap_or_default();
        Unseen { file, host: String::new(), why: error.to_string() }
    }
}

impl SpoolFile {
    /// Whether it is of the job that the run directory belongs to.
    ///
    /// # Errors
    /// As a sentence's end.
    pub fn check(&self, header: &Header) -> Result<(), String> {
        let is_others = |job: &String| !header.owner.job.is_empty() && header.owner.job != *job;
        match self.job.as_ref().is_some_and(is_others) {
            true => Err("is of another job than this directory".to_owned()),
            false => Ok(()),
        }
    }

    /// `why`: the end of a sentence whose subject is the spool.
    pub fn unseen(&self, why: &str) -> Unseen {
        Unseen {
            file: self.file.clone(),
            host: self.host.clone(),
            why: format!("its spool {} {why}", self.path.display()),
        }
    }
}

/// The spools that `listed`, of the run directory `root`, are or point to.
pub fn find(root: &Path, listed: &[PathBuf]) -> SpoolSearch {
    let mut found = SpoolSearch { sources: Vec::new(), unseen: Vec::new() };
    let job = Claim::read(root).map(|claim| claim.job);
    for path in listed {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let alone = |path: PathBuf, host: String| SpoolFile {
            path,
            file: stem(Path::new(&name)),
            host,
            job: job.clone(),
        };
        match parse_name(&name) {
            Some((_, "spool")) => found.sources.push(alone(path.clone(), String::new())),
            Some((key, "spool-at")) => {
                let none = || Pointer { host: String::new(), place: PathBuf::new() };
                let Pointer { host, place: there } = Pointer::read(path).unwrap_or_else(none);
                match key {
                    _ if !there.exists() => {
                        let job = job.as_deref().unwrap_or_default();
                        found.unseen.push(gone(root, path, host, &there, job));
                    }
                    FileKey::Rank { .. } => found.sources.push(alone(there, host)),
                    FileKey::Node { .. } => list_node(&there, &host, job.as_ref(), &mut found),
                }
            }
            _ => {}
        }
    }
    found
}

/// `rank-3` of `rank-3.spool-at`. Names of hosts may have dots in them.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The spools of the ranks of a node.
fn list_node(directory: &Path, host: &str, job: Option<&String>, found: &mut SpoolSearch) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((FileKey::Rank { .. }, "spool")) = parse_name(&name) {
            if let Some(error) = link_out(&path) {
                found.unseen.push(Unseen::file(&error));
                continue;
            }
            let (file, host) = (stem(&path), host.to_owned());
            found.sources.push(SpoolFile { path, file, host, job: job.cloned() });
        }
    }
}

/// What a pointer points to cannot be seen from here.
fn gone(root: &Path, pointer: &Path, host: String, there: &Path, job: &str) -> Unseen {
    let file = stem(pointer);
    let (place, run) = (there.display(), shell::quote(root));
    let why = if host.is_empty() {
        format!("{} does not say where the spool is", pointer.display())
    } else if host == host_name() {
        format!("the spool {place} is gone")
    } else {
        format!(
            "the spool is on {host} in {place}, which cannot be seen from here; with what starts a command there, as: \
             lapscope hang --launch '{}' {run}",
            launcher(&host, job)
        )
    };
    Unseen { file, host, why }
}

/// Says of a rank whose process cannot be seen from here what may be: the end of a sentence whose subject is its spool.
pub fn may_run(header: &Header, root: &Path) -> String {
    let (host, run) = (&header.owner.host, shell::quote(root));
    let place = header.owner.whereabouts();
    format!(
        "is of a process {place}, which cannot be seen from here: whether it still runs is not known, and what its spool shows may be \
         old; with what starts a command there, as: lapscope hang --launch '{}' {run}",
        launcher(host, &header.owner.job)
    )
}

/// What starts a command on the nodes of this job, or on its node.
fn launcher(host: &str, job: &str) -> String {
    match slurm::job_of(job) {
        Some(job) => format!("srun --overlap --jobid {job}"),
        None => format!("ssh {host}"),
    }
}
