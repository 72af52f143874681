//! Whose a run directory is.

use std::path::{Path, PathBuf};

use crate::db::{link_out, with_siblings};
use crate::files::read_short;
use crate::store;

/// Whose a run directory is, as its ranks have written into the file `job`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Identity of the job.
    pub job: String,
    /// The `lapscope` command that launched it; empty: there was none.
    pub launch: String,
}

/// Bytes of the file `job`.
const LONGEST: u64 = 4096;

impl Claim {
    /// `None` where nobody has claimed it.
    pub fn read(run: &Path) -> Option<Claim> {
        let path = run.join("job");
        let bytes = link_out(&path).is_none().then(|| read_short(&path, LONGEST))?;
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty())?;
        let text = String::from_utf8_lossy(&bytes);
        let (job, launch) = text.split_once('\n').unwrap_or((&text, ""));
        Some(Claim { job: job.to_owned(), launch: launch.to_owned() })
    }
}

/// The run directory that a spool is of. `named`: what `LAPSCOPE_DIR` says to its rank, where spools may lie elsewhere. `None`: it is
/// not known.
pub fn run_of(spool: &Path, named: &Path) -> Option<PathBuf> {
    let own = spool.parent()?;
    if Claim::read(own).is_some() {
        return Some(own.into());
    }
    let owner = store::owner(spool).ok()?;
    let wanted = Claim { job: owner.job, launch: owner.launch };
    let is_of = |directory: &PathBuf| Claim::read(directory).as_ref() == Some(&wanted);
    if let Some(directory) = with_siblings(named).find(is_of) {
        return Some(directory);
    }
    // the name of the job is part of its name
    let beside = std::fs::read_dir(named.parent()?).ok()?.flatten().map(|entry| entry.path());
    beside.filter(|path| path.is_dir()).find(is_of)
}
