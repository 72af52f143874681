//! Whose a run directory is.

use std::path::Path;

use crate::db::link_out;
use crate::files::read_short;

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
